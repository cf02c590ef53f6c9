//! What is to be run: a command, an address, or an entry of an `mcpServers` file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toctou_guard::servers::{Spec, Upstream};
use toctou_guard::upstream::{ChildSpec, HttpSpec};

/// A server, as the user named it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    Command(Command),
    Url(String),
}

/// A server that is started for each run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// The program and its arguments. `{workspace}` stands for the scratch folder.
    pub argv: Vec<String>,
    /// What the server gets of the environment, besides `PATH` and the scratch folders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Where it serves HTTP, if it does not speak on standard input and output.
    /// `{port}` is a port that is free, here, in its arguments and in its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Folders with its code: it may write there, and what it writes goes to the scratch area.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PathBuf>,
}

pub const WORKSPACE: &str = "{workspace}";
pub const PORT: &str = "{port}";

/// Where a server listens if only a path is named.
const LOOPBACK: &str = "http://localhost:{port}";

impl Target {
    /// A server of a client's file, and the headers that it wants.
    pub fn of(upstream: &Upstream) -> (Self, BTreeMap<String, String>) {
        match &upstream.spec {
            Spec::Child(child) => (Self::Command(Command::of(child)), BTreeMap::new()),
            Spec::Http(http) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let headers = http.headers().iter();
                (
                    Self::Url(http.url()),
                    headers
                        .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
                        .collect(),
                )
            }
        }
    }

    pub fn shown(&self) -> String {
        match self {
            Self::Command(command) => command.argv.join(" "),
            Self::Url(url) => url.clone(),
        }
    }
}

impl Command {
    fn of(child: &ChildSpec) -> Self {
        let mut argv = vec![child.command.clone()];
        argv.extend(child.args.iter().cloned());
        Self {
            argv,
            env: child.env.clone(),
            cwd: child.cwd.clone(),
            ..Self::default()
        }
        .found()
    }

    /// Paths made absolute, since the server has another working folder, and the
    /// folders found that hold its code.
    #[must_use]
    pub fn found(mut self) -> Self {
        let here = self
            .cwd
            .clone()
            .or_else(|| std::env::current_dir().ok())
            .unwrap_or_default();
        let mut packages = Vec::new();
        for (index, part) in self.argv.iter_mut().enumerate() {
            // A plain word that is no file of ours is a name, and the first is looked up in PATH.
            let named = part.contains('/') || (index > 0 && part.contains('.'));
            let path = here.join(&*part);
            if !named || part.starts_with('-') || !path.exists() {
                continue;
            }
            let path = path.canonicalize().unwrap_or(path);
            // A program of the system is no package; a virtual environment's Python keeps its name.
            if index > 0 {
                packages.extend(package_of(&path));
                *part = path.to_string_lossy().into_owned();
            } else if !Path::new(&*part).is_absolute() {
                *part = here.join(&*part).to_string_lossy().into_owned();
            }
        }
        packages.sort();
        packages.dedup();
        if self.packages.is_empty() {
            self.packages = packages;
        }
        self
    }

    /// Places that the server must see though others of their kind are hidden.
    pub fn readable(&self) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let parts = self.argv.iter().map(PathBuf::from).chain(self.cwd.clone());
        for path in parts {
            if path.is_absolute() && path.exists() {
                // A virtual environment's program needs the folders beside its own.
                let program = path.parent().filter(|folder| folder.ends_with("bin"));
                all.extend(program.and_then(Path::parent).map(Path::to_owned));
                // What a program imports may lie in any folder above it.
                let above = path
                    .ancestors()
                    .skip(1)
                    .map(|folder| folder.join("node_modules"));
                all.extend(above.filter(|folder| folder.is_dir()));
                all.push(path);
            }
        }
        all.sort();
        all.dedup();
        // What lies in another, or in a package, comes with it.
        let outer = all.clone();
        all.retain(|path| {
            let inside = |folder: &PathBuf| path != folder && path.starts_with(folder);
            !outer.iter().any(inside)
                && !self.packages.iter().any(|folder| path.starts_with(folder))
        });
        all
    }

    /// With the address at which it serves HTTP: a whole one, or a path.
    pub fn serving(mut self, address: &str) -> Result<Self, String> {
        let address = if address.starts_with('/') {
            format!("{LOOPBACK}{address}")
        } else {
            address.to_owned()
        };
        let told = |text: &String| text.contains(PORT);
        if address.contains(PORT) && !self.argv.iter().chain(self.env.values()).any(told) {
            return Err(format!(
                "nothing tells the server its port: write `{PORT}` into its command, or `--env PORT={PORT}`"
            ));
        }
        let spec = HttpSpec::new(&address.replace(PORT, "80"), &BTreeMap::new())?;
        if spec.is_tls() || !matches!(spec.host(), "localhost" | "127.0.0.1" | "[::1]") {
            return Err(format!(
                "`{address}` is not on the loopback: the sandbox has no other network"
            ));
        }
        self.http = Some(address);
        Ok(self)
    }

    /// Whether it always listens at the same port, so that there can be only one of it.
    pub fn has_fixed_port(&self) -> bool {
        self.http
            .as_ref()
            .is_some_and(|address| !address.contains(PORT))
    }

    /// What its placeholders stand for.
    pub fn filled(&self, workspace: &str, port: Option<u16>) -> Self {
        let port = port.map(|port| port.to_string()).unwrap_or_default();
        let fill = |text: &String| text.replace(WORKSPACE, workspace).replace(PORT, &port);
        Self {
            argv: self.argv.iter().map(fill).collect(),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), fill(value)))
                .collect(),
            http: self.http.as_ref().map(fill),
            ..self.clone()
        }
    }
}

/// The folder with the code that a file belongs to: the nearest with a manifest.
fn package_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return None;
    }
    let parent = path.parent()?;
    let manifests = [
        "package.json",
        "pyproject.toml",
        "requirements.txt",
        "go.mod",
        "Cargo.toml",
    ];
    parent
        .ancestors()
        .take(6)
        .find(|folder| manifests.iter().any(|name| folder.join(name).is_file()))
        .or(Some(parent))
        .map(Path::to_owned)
}
