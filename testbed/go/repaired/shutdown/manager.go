package main

import (
	"context"
	"errors"
	"os/exec"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Manager keeps sessions with other servers.
type Manager struct {
	mu       sync.RWMutex
	sessions map[string]*mcp.ClientSession
	closed   bool
	running  sync.WaitGroup
}

func (m *Manager) connect(ctx context.Context, name string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: name}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(name)}, nil)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.sessions[name] = session
	m.mu.Unlock()
	return nil
}

// connectAll fails at the first server that is not there.
func (m *Manager) connectAll(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := m.connect(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Calls count themselves in, in one step with the look at the flag.
func (m *Manager) call(ctx context.Context, name, tool string) (*mcp.CallToolResult, error) {
	m.mu.RLock()
	if m.closed {
		m.mu.RUnlock()
		return nil, errors.New("closed")
	}
	session := m.sessions[name]
	m.running.Add(1)
	m.mu.RUnlock()
	defer m.running.Done()
	return session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
}

// Close lets nobody in, waits for those who are, and then closes.
func (m *Manager) Close() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed = true
	m.mu.Unlock()
	m.running.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, session := range m.sessions {
		session.Close()
	}
	m.sessions = nil
}
