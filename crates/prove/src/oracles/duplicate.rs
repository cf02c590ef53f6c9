//! Something stands twice that stands once after every serial order.

use super::{Class, Evidence, Kind};
use crate::timeline::short;

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
            format!("{} stands there once too often", short(found, 80)),
        )
    })
}
