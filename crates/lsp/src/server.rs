//! The conversation with the editor.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::folders::{Done, Folder, PAUSE};
use crate::protocol::{
    Changed, Diagnostic, FilesChanged, FoldersChanged, Initialize, OfDocument, Opened,
};
use crate::{Engine, Failure, Overlay, ServeError, diagnostics, text, transport, uri};

/// Scans at a time: each uses all cores.
const SCANS: usize = 2;

/// On standard input and output, until the editor says that it is enough.
pub fn serve_stdio(engine: Arc<dyn Engine>) -> Result<(), ServeError> {
    let (connection, writer) = transport::stdio();
    serve(&connection, engine)?;
    drop(connection);
    match writer.join() {
        Ok(written) => Ok(written?),
        Err(_) => Err(ServeError::Gone),
    }
}

pub fn serve(connection: &Connection, engine: Arc<dyn Engine>) -> Result<(), ServeError> {
    let (id, params) = connection.initialize_start()?;
    let params: Initialize = serde_json::from_value(params).unwrap_or_default();
    let abilities = json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": { "openClose": true, "change": 2, "save": true },
            "hoverProvider": true,
            "codeActionProvider": { "codeActionKinds": ["quickfix"] },
            "workspace": {
                "workspaceFolders": { "supported": true, "changeNotifications": true },
            },
        },
        "serverInfo": { "name": "toctou", "version": env!("CARGO_PKG_VERSION") },
    });
    connection.initialize_finish(id, abilities)?;
    let (done, finished) = unbounded();
    let mut server = Server {
        connection,
        engine,
        folders: Vec::new(),
        documents: BTreeMap::new(),
        done,
    };
    server.watch_files(&params.capabilities);
    let roots = params.workspace_folders.unwrap_or_default();
    let roots = roots
        .into_iter()
        .map(|folder| folder.uri)
        .chain(params.root_uri);
    for root in roots {
        server.add_folder(&root);
    }
    server.run(&finished)
}

/// A text that is open in the editor.
pub(crate) struct Document {
    uri: String,
    version: i64,
    pub(crate) text: Arc<str>,
    /// As the file system names it.
    real: PathBuf,
}

pub(crate) struct Server<'a> {
    connection: &'a Connection,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) folders: Vec<Folder>,
    pub(crate) documents: BTreeMap<PathBuf, Document>,
    done: Sender<Done>,
}

impl Server<'_> {
    fn run(&mut self, finished: &Receiver<Done>) -> Result<(), ServeError> {
        let mut waiting: VecDeque<Message> = VecDeque::new();
        loop {
            self.start_scans();
            let due = self.folders.iter().filter_map(Folder::due).min();
            let wake = match due.filter(|_| self.running() < SCANS) {
                Some(due) => after(due.saturating_duration_since(Instant::now())),
                None => never(),
            };
            select! {
                recv(self.connection.receiver) -> message => match message {
                    Ok(message) => waiting.push_back(message),
                    Err(_) => return Err(ServeError::Gone),
                },
                recv(finished) -> done => {
                    if let Ok(done) = done {
                        self.finish(done);
                    }
                }
                recv(wake) -> _ => {}
            }
            // All that has come, before any of it is answered: a request may
            // have been taken back.
            waiting.extend(self.connection.receiver.try_iter());
            self.drop_cancelled(&mut waiting);
            while let Some(message) = waiting.pop_front() {
                match message {
                    Message::Request(request) => {
                        if self.connection.handle_shutdown(&request)? {
                            self.folders.iter().for_each(Folder::stop);
                            return Ok(());
                        }
                        self.request(request);
                    }
                    Message::Notification(notification) => self.notified(notification),
                    Message::Response(_) => {}
                }
            }
        }
    }

    fn drop_cancelled(&self, waiting: &mut VecDeque<Message>) {
        let taken_back: Vec<RequestId> = waiting
            .iter()
            .filter_map(|message| match message {
                Message::Notification(n) if n.method == "$/cancelRequest" => {
                    serde_json::from_value(n.params.get("id")?.clone()).ok()
                }
                _ => None,
            })
            .collect();
        if taken_back.is_empty() {
            return;
        }
        waiting.retain(|message| {
            let Message::Request(request) = message else {
                return true;
            };
            let dropped = taken_back.contains(&request.id) && request.method != "shutdown";
            if dropped {
                self.send(Message::Response(Response::new_err(
                    request.id.clone(),
                    ErrorCode::RequestCanceled as i32,
                    "cancelled".to_owned(),
                )));
            }
            !dropped
        });
    }

    pub(crate) fn send(&self, message: Message) {
        // Nobody there: the next receive says so.
        let _ = self.connection.sender.send(message);
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(Message::Notification(Notification {
            method: method.to_owned(),
            params,
        }));
    }

    fn log(&self, text: &str) {
        self.notify("window/logMessage", json!({ "type": 2, "message": text }));
    }

    /// Files that are changed by others than the editor, if it can tell.
    fn watch_files(&self, abilities: &Value) {
        let dynamic = &abilities["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"];
        if dynamic != &Value::Bool(true) {
            return;
        }
        let glob = "**/*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,py,go,rs,sql,toml,json,mod,txt}";
        self.send(Message::Request(Request {
            id: RequestId::from("watch".to_owned()),
            method: "client/registerCapability".to_owned(),
            params: json!({ "registrations": [{
                "id": "watch",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": { "watchers": [{ "globPattern": glob }] },
            }] }),
        }));
    }

    // Folders

    fn add_folder(&mut self, uri: &str) {
        let Some(path) = uri::to_path(uri) else {
            return;
        };
        // One that is inside of another is scanned with it.
        if self.folder_of(&path).is_none() {
            let mut folder = Folder::new(path);
            folder.changed(Duration::ZERO);
            self.folders.push(folder);
        }
    }

    fn remove_folder(&mut self, uri: &str) {
        let Some(path) = uri::to_path(uri) else {
            return;
        };
        if let Some(index) = self.folders.iter().position(|folder| folder.path == path) {
            let mut folder = self.folders.remove(index);
            folder.stop();
            for file in folder.show(BTreeMap::new()) {
                self.publish(&file, &[], None);
            }
        }
    }

    pub(crate) fn folder_of(&self, path: &Path) -> Option<usize> {
        self.folders
            .iter()
            .position(|folder| path.starts_with(&folder.path))
    }

    fn changed(&mut self, path: &Path, pause: Duration) {
        if let Some(index) = self.folder_of(path) {
            self.folders[index].changed(pause);
        }
    }

    fn running(&self) -> usize {
        let is_running = |folder: &&Folder| folder.is_running();
        self.folders.iter().filter(is_running).count()
    }

    fn start_scans(&mut self) {
        let now = Instant::now();
        while self.running() < SCANS {
            let next = self
                .folders
                .iter_mut()
                .filter(|folder| folder.due().is_some_and(|due| due <= now))
                .min_by_key(|folder| folder.due());
            let Some(folder) = next else {
                return;
            };
            let stop = folder.begin();
            let inside = |path: &Path| path.starts_with(&folder.path);
            let open = || self.documents.iter().filter(|(path, _)| inside(path));
            let overlay: Overlay = open()
                .map(|(_, document)| (document.real.clone(), Arc::clone(&document.text)))
                .collect();
            let versions = open()
                .map(|(path, document)| (path.clone(), document.version))
                .collect();
            let (path, real) = (folder.path.clone(), folder.real.clone());
            let (engine, done) = (Arc::clone(&self.engine), self.done.clone());
            std::thread::spawn(move || {
                let result = engine.scan(&real, &overlay, &stop);
                // A server that has ended needs no answer.
                let _ = done.send(Done {
                    folder: path,
                    result,
                    versions,
                });
            });
        }
    }

    fn finish(&mut self, done: Done) {
        let Some(folder) = self.folders.iter_mut().find(|f| f.path == done.folder) else {
            return;
        };
        if !folder.end() {
            return;
        }
        let mut new = BTreeMap::new();
        match done.result {
            Err(Failure::Stopped) => return,
            Err(Failure::Failed { text, problems }) => {
                folder.scan = None;
                diagnostics::of_problems(&folder.path, &problems, &mut new);
                self.log(&text);
            }
            Ok(scan) => {
                new = diagnostics::of_scan(&folder.path, &scan);
                folder.scan = Some(Arc::new(scan));
            }
        }
        let Some(index) = self.folders.iter().position(|f| f.path == done.folder) else {
            return;
        };
        let mut files: BTreeSet<PathBuf> = self.folders[index].show(new);
        // A text without findings is told that it has none.
        files.extend(done.versions.keys().cloned());
        for file in files {
            let shown = self.folders[index].shown.get(&file);
            let shown = shown.map_or(&[][..], Vec::as_slice);
            self.publish(&file, shown, done.versions.get(&file).copied());
        }
    }

    fn publish(&self, file: &Path, shown: &[Diagnostic], version: Option<i64>) {
        let uri = match self.documents.get(file) {
            Some(document) => document.uri.clone(),
            None => uri::of_path(file),
        };
        let mut params = json!({ "uri": uri, "diagnostics": shown });
        if let Some(version) = version {
            params["version"] = version.into();
        }
        self.notify("textDocument/publishDiagnostics", params);
    }

    // Documents

    fn notified(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        match method.as_str() {
            "textDocument/didOpen" => {
                if let Some(opened) = read::<Opened>(params) {
                    self.open(opened);
                }
            }
            "textDocument/didChange" => {
                if let Some(changed) = read::<Changed>(params) {
                    self.change(changed);
                }
            }
            "textDocument/didSave" => {
                if let Some(path) = document(params) {
                    self.changed(&path, Duration::ZERO);
                }
            }
            "textDocument/didClose" => {
                if let Some(path) = document(params) {
                    self.documents.remove(&path);
                    self.changed(&path, PAUSE);
                }
            }
            "workspace/didChangeWatchedFiles" => {
                for change in read::<FilesChanged>(params).map_or_else(Vec::new, |all| all.changes)
                {
                    // An open text hides what is on disk.
                    let path = uri::to_path(&change.uri);
                    if let Some(path) = path.filter(|path| !self.documents.contains_key(path)) {
                        self.changed(&path, PAUSE);
                    }
                }
            }
            "workspace/didChangeWorkspaceFolders" => {
                if let Some(FoldersChanged { event }) = read(params) {
                    for folder in event.removed {
                        self.remove_folder(&folder.uri);
                    }
                    for folder in event.added {
                        self.add_folder(&folder.uri);
                    }
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, opened: Opened) {
        let document = opened.text_document;
        let Some(path) = uri::to_path(&document.uri) else {
            return;
        };
        if self.folder_of(&path).is_none()
            && self.engine.comment(&path).is_some()
            && let Some(parent) = path.parent()
        {
            // A file without a workspace is scanned with its neighbours.
            self.folders.push(Folder::new(parent.to_owned()));
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        self.documents.insert(
            path.clone(),
            Document {
                uri: document.uri,
                version: document.version,
                text: Arc::from(document.text),
                real,
            },
        );
        self.changed(&path, Duration::ZERO);
    }

    fn change(&mut self, changed: Changed) {
        let Some(path) = uri::to_path(&changed.text_document.uri) else {
            return;
        };
        let Some(document) = self.documents.get_mut(&path) else {
            return;
        };
        let mut whole = document.text.to_string();
        for change in changed.content_changes {
            text::apply(&mut whole, change);
        }
        document.text = Arc::from(whole);
        document.version = changed
            .text_document
            .version
            .unwrap_or(document.version + 1);
        self.changed(&path, PAUSE);
    }
}

/// What is not as the protocol has it is passed over: there is nobody to tell.
pub(crate) fn read<T: DeserializeOwned>(params: Value) -> Option<T> {
    serde_json::from_value(params).ok()
}

fn document(params: Value) -> Option<PathBuf> {
    uri::to_path(&read::<OfDocument>(params)?.text_document.uri)
}
