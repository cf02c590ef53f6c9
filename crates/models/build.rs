//! Puts the files in `libraries/` into JSON, for the program to read at its start. Nothing is left
//! out but the comments: what a file says is decided where it is read.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=libraries");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for entry in fs::read_dir("libraries")? {
        let folder = entry?;
        if folder.file_type()?.is_dir() {
            put(&folder.path(), &out.join(folder.file_name()))?;
        }
    }
    Ok(())
}

/// All files of one language.
fn put(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let file = entry?.path();
        if file.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        let library: serde_json::Value =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.with_extension("json");
        let name = name.file_name().ok_or("a file without a name")?;
        fs::write(to.join(name), library.to_string())?;
    }
    Ok(())
}
