package main

import (
	"context"
	"log"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type Item struct {
	Session string `json:"session"`
	Name    string `json:"name"`
}

// Carts are kept in memory, one per session.
type Carts struct {
	mu    sync.RWMutex
	carts map[string][]string
	seen  map[string]int
}

// The lock is given back between the look and the change.
func (c *Carts) add(ctx context.Context, req *mcp.CallToolRequest, in Item) (*mcp.CallToolResult, any, error) {
	c.mu.RLock()
	cart := c.carts[in.Session]
	c.mu.RUnlock()
	cart = append(cart, in.Name)
	c.mu.Lock()
	c.carts[in.Session] = cart
	c.mu.Unlock()
	return text("added"), nil, nil
}

// Nobody holds a lock for this map: two calls at once end the process.
func (c *Carts) visit(ctx context.Context, req *mcp.CallToolRequest, in Item) (*mcp.CallToolResult, any, error) {
	c.seen[in.Session]++
	return text("seen"), nil, nil
}


func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func main() {
	carts := &Carts{carts: map[string][]string{}, seen: map[string]int{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "session-memory", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "cart_add"}, carts.add)
	mcp.AddTool(server, &mcp.Tool{Name: "visit"}, carts.visit)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
