//! Lowers every file under the given folders and says how that went.
//!
//! `cargo run --release --example lower -- [--dump] [--repeat N] PATH…`
//!
//! Every module is validated; problems, errors and warnings are printed. Used
//! to try the front end on real repositories, and to look at the IR of a file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toctou_core::FileId;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{self, Module, Target};
use toctou_frontend_go::{FRONTEND, lower, resolve};

#[derive(Default)]
struct Input {
    sources: Vec<(String, String)>,
    manifests: Vec<Manifest>,
}

fn main() {
    let mut dump = false;
    let mut repeat = 1;
    let mut roots = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--dump" => dump = true,
            "--repeat" => repeat = args.next().and_then(|n| n.parse().ok()).unwrap_or(1),
            _ => roots.push(PathBuf::from(arg)),
        }
    }
    for root in &roots {
        run(root, dump, repeat);
    }
}

fn run(root: &Path, dump: bool, repeat: u32) {
    let mut input = Input::default();
    read(root, root, &mut input);
    input.sources.sort();
    let bytes: usize = input.sources.iter().map(|(_, text)| text.len()).sum();

    let mut modules: Vec<Module> = Vec::new();
    let mut paths = Vec::new();
    let (mut errors, mut warnings, mut invalid) = (0, 0, 0);
    let mut best = Duration::MAX;
    let mut slowest = (Duration::ZERO, "");
    for round in 0..repeat {
        let start = Instant::now();
        for (path, text) in &input.sources {
            let file = FileId(modules.len() as u32);
            let one = Instant::now();
            let result = lower(file, path, text);
            let took = one.elapsed();
            if took > slowest.0 {
                slowest = (took, path);
            }
            if round > 0 {
                continue;
            }
            match result {
                Err(error) => {
                    errors += 1;
                    println!("error {path}: {error}");
                }
                Ok(lowered) => {
                    for warning in &lowered.warnings {
                        warnings += 1;
                        println!("warning {path}: {warning}");
                    }
                    for problem in ir::validate(&lowered.module) {
                        invalid += 1;
                        println!("INVALID {path}: {problem}");
                    }
                    paths.push(path.clone());
                    modules.push(lowered.module);
                }
            }
        }
        best = best.min(start.elapsed());
    }
    let start = Instant::now();
    let stats = resolve(&paths, &mut modules, &input.manifests);
    let resolving = start.elapsed();
    if dump {
        for (path, module) in paths.iter().zip(&modules) {
            println!("== {path}\n{}", ir::dump(module));
        }
    }
    let functions: usize = modules.iter().map(|m| m.functions.len()).sum();
    let instructions: usize = modules
        .iter()
        .flat_map(|m| &m.functions)
        .flat_map(|f| &f.blocks)
        .map(|b| b.insts.len())
        .sum();
    let unresolved = modules
        .iter()
        .flat_map(|m| m.imports.iter().map(move |i| (m, i)))
        .filter(|(m, i)| match &i.target {
            Some(Target::External(name)) => m.names.text(*name).starts_with('.'),
            Some(Target::Module(_)) => false,
            None => true,
        })
        .count();
    let files = input.sources.len().max(1);
    println!(
        "{}: {files} files, {} KB, {functions} functions, {instructions} instructions; \
         {errors} errors, {warnings} warnings, {invalid} invalid; {best:?} ({:?} per file, {:.0} MB/s), \
         slowest {:?} {}; resolve {resolving:?} {stats:?}, {unresolved} relative imports unresolved",
        root.display(),
        bytes / 1024,
        best / files as u32,
        bytes as f64 / 1e6 / best.as_secs_f64().max(1e-9),
        slowest.0,
        slowest.1,
    );
}

fn read(root: &Path, path: &Path, input: &mut Input) {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    if path.is_dir() {
        if name == "node_modules" || name == ".git" {
            return;
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            read(root, &entry.path(), input);
        }
        return;
    }
    let relative = path.strip_prefix(root).unwrap_or(path);
    let relative = if relative.as_os_str().is_empty() {
        name.to_owned()
    } else {
        relative.to_string_lossy().replace('\\', "/")
    };
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let is_source = (FRONTEND.is_source)(name);
    let is_manifest = name == "package.json"
        || name == "jsconfig.json"
        || name == "pnpm-workspace.yaml"
        || (name.starts_with("tsconfig") && extension == "json");
    if !is_source && !is_manifest {
        return;
    }
    let Ok(bytes) = std::fs::read(path) else {
        return;
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if is_source {
        input.sources.push((relative, text));
    } else {
        input.manifests.push(Manifest {
            path: relative,
            text,
        });
    }
}
