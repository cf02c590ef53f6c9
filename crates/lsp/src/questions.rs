//! What an editor asks, answered from the last scan.

use lsp_server::{ErrorCode, Message, Request, Response};
use serde_json::{Value, json};

use crate::actions::Context;
use crate::folders::Folder;
use crate::protocol::{Actions, At, Position, Range};
use crate::server::{Server, read};
use crate::{Scan, diagnostics, hover, uri};

impl Server<'_> {
    pub(crate) fn request(&self, request: Request) {
        let Request { id, method, params } = request;
        let answer = match method.as_str() {
            "textDocument/hover" => read::<At>(params).map(|at| self.hover(&at)),
            "textDocument/codeAction" => read::<Actions>(params).map(|asked| self.actions(&asked)),
            _ => {
                let text = format!("there is no `{method}` here");
                let code = ErrorCode::MethodNotFound as i32;
                return self.send(Message::Response(Response::new_err(id, code, text)));
            }
        };
        self.send(Message::Response(match answer {
            Some(answer) => Response::new_ok(id, answer),
            None => Response::new_err(
                id,
                ErrorCode::InvalidParams as i32,
                format!("not the parameters of `{method}`"),
            ),
        }));
    }

    /// The folder of a document and its last scan, if the document has not changed since.
    fn scanned(&self, uri: &str) -> Option<(&Folder, &Scan, String)> {
        let path = uri::to_path(uri)?;
        let folder = &self.folders[self.folder_of(&path)?];
        let scan = folder.scan.as_deref()?;
        let below = path.strip_prefix(&folder.path).ok()?;
        let below: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        let below = below.join("/");
        let now = self.documents.get(&path).map(|document| &*document.text);
        let then = diagnostics::source(scan, &below).map(|source| &*source.text);
        (now.is_none() || now == then).then_some((folder, scan, below))
    }

    fn hover(&self, at: &At) -> Value {
        let uri = &at.text_document.uri;
        let line = uri::to_path(uri)
            .and_then(|path| self.documents.get(&path))
            .and_then(|document| document.text.lines().nth(at.position.line as usize))
            .unwrap_or_default();
        let here = Range {
            start: at.position,
            end: at.position,
        };
        let scanned = self.scanned(uri);
        let findings = scanned.iter().flat_map(|(_, scan, file)| {
            scan.findings.iter().filter(|finding| {
                finding.location.file == *file
                    && meet(diagnostics::range(scan, &finding.location), here)
            })
        });
        let rules = hover::rules(line, &findings.collect::<Vec<_>>());
        if rules.is_empty() {
            return Value::Null;
        }
        json!({ "contents": { "kind": "markdown", "value": hover::markdown(&rules) } })
    }

    fn actions(&self, asked: &Actions) -> Value {
        let wanted = asked.context.only.as_ref();
        let wanted = wanted.is_none_or(|only| {
            only.iter()
                .any(|kind| kind == "quickfix" || kind.is_empty())
        });
        let Some((folder, scan, file)) = self.scanned(&asked.text_document.uri).filter(|_| wanted)
        else {
            return json!([]);
        };
        let context = Context {
            folder: &folder.path,
            scan,
            engine: &*self.engine,
        };
        let mut actions = Vec::new();
        let here = scan
            .findings
            .iter()
            .filter(|finding| finding.location.file == file);
        for finding in here {
            let diagnostic = diagnostics::of_finding(&folder.path, scan, finding);
            if meet(diagnostic.range, asked.range) {
                actions.extend(context.of_finding(finding, &json!(diagnostic)));
            }
        }
        Value::Array(actions)
    }
}

fn meet(a: Range, b: Range) -> bool {
    let inside = |range: Range, at: Position| range.start <= at && at <= range.end;
    inside(a, b.start) || inside(b, a.start)
}
