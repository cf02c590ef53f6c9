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
	mu    sync.Mutex
	carts map[string][]string
	seen  map[string]int
}

func (c *Carts) add(ctx context.Context, req *mcp.CallToolRequest, in Item) (*mcp.CallToolResult, any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.carts[in.Session] = append(c.carts[in.Session], in.Name)
	return text("added"), nil, nil
}

func (c *Carts) visit(ctx context.Context, req *mcp.CallToolRequest, in Item) (*mcp.CallToolResult, any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
