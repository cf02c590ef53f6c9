package main

import (
	"context"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type Note struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

type Export struct {
	Title string `json:"title"`
	File  string `json:"file"`
}

func (s *Store) addNote(ctx context.Context, req *mcp.CallToolRequest, in Note) (*mcp.CallToolResult, any, error) {
	err := s.update(func(notes map[string]string) { notes[in.Title] = in.Text })
	if err != nil {
		return nil, nil, err
	}
	return text("added"), nil, nil
}

func (s *Store) deleteNote(ctx context.Context, req *mcp.CallToolRequest, in Note) (*mcp.CallToolResult, any, error) {
	err := s.update(func(notes map[string]string) { delete(notes, in.Title) })
	if err != nil {
		return nil, nil, err
	}
	return text("deleted"), nil, nil
}

func (s *Store) exportNote(ctx context.Context, req *mcp.CallToolRequest, in Export) (*mcp.CallToolResult, any, error) {
	notes, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(in.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if _, err := file.WriteString(notes[in.Title]); err != nil {
		return nil, nil, err
	}
	return text("exported"), nil, nil
}


func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func main() {
	store := &Store{path: "notes.json"}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes-file", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add_note"}, store.addNote)
	mcp.AddTool(server, &mcp.Tool{Name: "delete_note"}, store.deleteNote)
	mcp.AddTool(server, &mcp.Tool{Name: "export_note"}, store.exportNote)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
