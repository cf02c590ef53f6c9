//! A file that could be read after every serial order, and cannot be read now.

use super::{Class, Evidence, Kind};

pub fn judge(evidence: &Evidence<'_>) -> Option<(Kind, String)> {
    if evidence.class != Class::State {
        return None;
    }
    for (path, content) in &evidence.outcome.files.all {
        if content.format().is_some() {
            continue;
        }
        let mut formats = evidence.serial.iter().map(|run| {
            run.outcome
                .files
                .all
                .get(path)
                .and_then(|content| content.format())
        });
        let format = formats.next().flatten();
        if let Some(format) = format
            && formats.all(|other| other.is_some())
        {
            return Some((Kind::Torn, format!("`{path}` is no longer valid {format}")));
        }
    }
    None
}
