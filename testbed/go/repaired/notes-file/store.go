package main

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/gofrs/flock"
)

// Store keeps all notes in one file. A lock file keeps out other calls and
// other processes, from the load to the save.
type Store struct {
	path string
}

func (s *Store) update(change func(map[string]string)) error {
	lock := flock.New(s.path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Unlock()
	notes, err := s.load()
	if err != nil {
		return err
	}
	change(notes)
	return s.save(notes)
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
