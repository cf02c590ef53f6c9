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

func (l *Limiter) used(client string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[client]
}

func (l *Limiter) use(client string, count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[client] = count
}

// Every call between the look and the count sees the same number.
func (l *Limiter) ask(ctx context.Context, req *mcp.CallToolRequest, in Question) (*mcp.CallToolResult, any, error) {
	count := l.used(in.Client)
	if count >= limit {
		return nil, nil, errors.New("rate limit exceeded")
	}
	l.use(in.Client, count+1)
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
