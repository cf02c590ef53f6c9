//! The languages that are analysed.

use toctou_core::frontend::Frontend;

/// One line for each front end.
pub(crate) static FRONTENDS: &[Frontend] = &[
    toctou_frontend_typescript::FRONTEND,
    toctou_frontend_python::FRONTEND,
    toctou_frontend_go::FRONTEND,
    toctou_frontend_rust::FRONTEND,
];

/// The front end that lowers a file of this name, as an index into [`FRONTENDS`].
pub(crate) fn of(name: &str) -> Option<usize> {
    FRONTENDS
        .iter()
        .position(|frontend| (frontend.is_source)(name))
}

pub(crate) fn is_manifest(name: &str) -> bool {
    is_schema(name)
        || is_guide(name)
        || FRONTENDS
            .iter()
            .any(|frontend| (frontend.is_manifest)(name))
}

/// A file that says what tables there are, whatever language uses them.
pub(crate) fn is_schema(name: &str) -> bool {
    name.ends_with(".sql") || name.ends_with(".prisma")
}

/// A file that says how programs are started, to people or to tools.
pub(crate) fn is_guide(path: &str) -> bool {
    const NAMES: &[&str] = &[
        "dockerfile",
        "docker-compose.yml",
        "docker-compose.yaml",
        "compose.yaml",
        "justfile",
        "makefile",
        "manifest.json",
        "procfile",
        "readme.md",
        "server.json",
        "smithery.yaml",
        "vercel.json",
        "wrangler.json",
        "wrangler.jsonc",
        "wrangler.toml",
    ];
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    NAMES.contains(&name.as_str())
}

/// `TypeScript, JavaScript, Python, Go or Rust`
pub(crate) fn labels() -> String {
    let labels: Vec<&str> = FRONTENDS.iter().map(|frontend| frontend.label).collect();
    match labels.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => labels.concat(),
    }
}
