package main

import (
	"context"
	"errors"
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
	notes, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	notes[in.Title] = in.Text
	if err := s.save(notes); err != nil {
		return nil, nil, err
	}
	return text("added"), nil, nil
}

func (s *Store) deleteNote(ctx context.Context, req *mcp.CallToolRequest, in Note) (*mcp.CallToolResult, any, error) {
	notes, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	delete(notes, in.Title)
	if err := s.save(notes); err != nil {
		return nil, nil, err
	}
	return text("deleted"), nil, nil
}

func (s *Store) exportNote(ctx context.Context, req *mcp.CallToolRequest, in Export) (*mcp.CallToolResult, any, error) {
	notes, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(in.File); err == nil {
		return nil, nil, errors.New("there is such a file")
	}
	if err := os.WriteFile(in.File, []byte(notes[in.Title]), 0o600); err != nil {
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
