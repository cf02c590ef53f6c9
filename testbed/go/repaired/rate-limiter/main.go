package main

import (
	"context"
	"errors"
	"log"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const limit = 10

type Question struct {
	Client string `json:"client"`
	Text   string `json:"text"`
}

// Limiter counts the calls of each client.
type Limiter struct {
	mu    sync.Mutex
	count map[string]int
}

// take counts a call, if there is one left.
func (l *Limiter) take(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count[client] >= limit {
		return false
	}
	l.count[client]++
	return true
}

func (l *Limiter) ask(ctx context.Context, req *mcp.CallToolRequest, in Question) (*mcp.CallToolResult, any, error) {
	if !l.take(in.Client) {
		return nil, nil, errors.New("rate limit exceeded")
	}
	return text("42"), nil, nil
}


func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func main() {
	limiter := &Limiter{count: map[string]int{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "rate-limiter", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, limiter.ask)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
