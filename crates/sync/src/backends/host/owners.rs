//! Who is alive. Each open backend locks a byte of its own, and the kernel unlocks it when the process is gone.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::{CachedStatement, Params, Result};

use super::range::{self, Kind};

pub struct Owners {
    file: File,
    me: i64,
}

impl Owners {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = super::open_file(path)?;
        loop {
            // Positive and below 2^60: it is an offset in a file and a number in the database.
            let me = fastrand::i64(1..1 << 60);
            if range::try_lock(&file, Kind::Exclusive, me.unsigned_abs(), 1)? {
                return Ok(Self { file, me });
            }
        }
    }

    pub fn me(&self) -> i64 {
        self.me
    }

    pub fn is_alive(&self, owner: i64) -> io::Result<bool> {
        Ok(owner == self.me || range::is_locked(&self.file, owner.unsigned_abs(), 1)?)
    }

    /// Those of a query's owners who are gone. Whoever cannot be found out about counts as alive.
    pub fn dead(&self, mut query: CachedStatement<'_>, of: impl Params) -> Result<Vec<i64>> {
        let mut dead = Vec::new();
        for owner in query.query_map(of, |row| row.get(0))? {
            let owner = owner?;
            if !self.is_alive(owner).unwrap_or(true) {
                dead.push(owner);
            }
        }
        Ok(dead)
    }
}
