//! What has to be known of a message to send it.

use crate::session::Session;
use crate::wire::{self, Id, Kind, Parsed};

/// Where requests say which revision they speak, since there is no handshake.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What the headers of a POST say about its body.
pub(super) struct Envelope {
    /// The id of a request, as sent.
    pub(super) id: Option<(Id, String)>,
    pub(super) method: String,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    /// Arguments that stand in headers too.
    pub(super) mirrored: Vec<(String, String)>,
}

impl Envelope {
    pub(super) fn read(bytes: &[u8], session: &Session) -> Option<Self> {
        let Ok(Parsed::One(message)) = wire::parse(bytes, session.limits()) else {
            return None;
        };
        let params = message.params().ok()?;
        let version = params.meta.and_then(|meta| {
            let ([version], _) = wire::fields(meta.get(), [META_VERSION]).ok()?;
            serde_json::from_str(version?.get()).ok()
        });
        let id = match (message.kind, message.id, message.raw_id) {
            (Kind::Request, Some(id), Some(raw)) => Some((id, raw.get().to_owned())),
            _ => None,
        };
        Some(Self {
            mirrored: Vec::new(),
            id,
            method: message.method.into_owned(),
            name: params.name.or(params.uri).map(std::borrow::Cow::into_owned),
            version,
        })
    }

    /// Whether arguments have to stand in headers.
    pub(super) fn mirrors(&self) -> bool {
        self.version.is_some() && self.method == "tools/call"
    }

    /// Finds the arguments that the server wants in headers, by what it said about its tools.
    pub(super) fn mirror(&mut self, bytes: &[u8], session: &Session) {
        let marked = session.mirrored(self.name.as_deref().unwrap_or_default());
        if marked.is_empty() {
            return;
        }
        if let Ok(Parsed::One(message)) = wire::parse(bytes, session.limits())
            && let Ok(params) = message.params()
        {
            let arguments = params.arguments.map_or("null", wire::Raw::get);
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            let header = |one: &wire::Mirrored| Some((one.header.clone(), one.value(&arguments)?));
            self.mirrored = marked.iter().filter_map(header).collect();
        }
    }
}
