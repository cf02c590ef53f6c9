package main

import (
	"context"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type Call struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

func (m *Manager) forward(ctx context.Context, req *mcp.CallToolRequest, in Call) (*mcp.CallToolResult, any, error) {
	result, err := m.call(ctx, in.Server, in.Tool)
	return result, nil, err
}

func (m *Manager) drain(ctx context.Context, req *mcp.CallToolRequest, in struct{}) (*mcp.CallToolResult, any, error) {
	m.Close()
	return text("closed"), nil, nil
}


func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func main() {
	manager := &Manager{sessions: map[string]*mcp.ClientSession{}}
	defer manager.Close()
	if err := manager.connectAll(context.Background(), os.Args[1:]); err != nil {
		log.Print(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "shutdown", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "forward"}, manager.forward)
	mcp.AddTool(server, &mcp.Tool{Name: "drain"}, manager.drain)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
