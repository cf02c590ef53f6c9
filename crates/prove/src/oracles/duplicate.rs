//! Something stands twice that stands once after every serial order.

use super::{Class, Evidence, Kind};

pub fn judge(evidence: &Evidence<'_>) -> Option<(Kind, String)> {
    if evidence.class != Class::State {
        return None;
    }
    let [only] = evidence.differences else {
        return None;
    };
    let (None, Some(found)) = (&only.expected, &only.found) else {
        return None;
    };
    let list = only.path.ends_with('*');
    list.then(|| {
        (
            Kind::Duplicate,
            format!("{} stands there once too often", short(found)),
        )
    })
}

fn short(text: &str) -> String {
    if text.chars().count() > 80 {
        let start: String = text.chars().take(77).collect();
        return format!("{start}...");
    }
    text.to_owned()
}
