package main

import (
	"encoding/json"
	"errors"
	"os"
)

// Store keeps all notes in one file. A temporary file and a rename keep the
// file whole; they do not keep two calls apart.
type Store struct {
	path string
}

func (s *Store) load() (map[string]string, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	notes := map[string]string{}
	return notes, json.Unmarshal(data, &notes)
}

func (s *Store) save(notes map[string]string) error {
	data, err := json.Marshal(notes)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(".", "notes-*")
	if err != nil {
		return err
	}
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), s.path)
}
