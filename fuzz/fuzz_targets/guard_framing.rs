//! Bytes of a stranger as messages: lines, envelopes, events, masks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toctou_guard::record::mask;
use toctou_guard::wire::{Events, Limits, Lines, Parsed, insert_meta, parse, replace};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { bytes: 4096, depth: 32, batch: 8 };
    let mut lines = Lines::new(limits.bytes);
    let mut events = Events::new(limits.bytes);
    let size = usize::from(data.first().copied().unwrap_or(1)).max(1);
    for chunk in data.chunks(size) {
        lines.room().extend_from_slice(chunk);
        while let Some(line) = lines.next_line() {
            if let Ok(line) = line {
                message(&line, &limits);
            }
        }
        events.feed(chunk);
        while let Some(Ok(event)) = events.next_event() {
            message(&event.data, &limits);
        }
    }
});

/// What is cut into a message leaves it a message.
fn message(bytes: &[u8], limits: &Limits) {
    let Ok(parsed) = parse(bytes, limits) else { return };
    // What passes is JSON to others too.
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).expect("JSON");
    let Parsed::One(message) = parsed else { return };
    let params = message.params();
    if let (Some(whole), Ok(params)) = (message.params, params)
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(whole.get())
    {
        let seen = params.arguments.map(|raw| serde_json::from_str(raw.get()).expect("JSON"));
        assert_eq!(seen.as_ref(), value.get("arguments"));
    }
    if let Some(id) = message.raw_id {
        let other = replace(bytes, &[(id, b"12345")]);
        let larger = Limits { bytes: 8192, depth: 64, batch: 8 };
        match parse(&other, &larger) {
            Ok(Parsed::One(again)) => assert_eq!((again.kind, again.method), (message.kind, message.method.clone())),
            other => panic!("{other:?}"),
        }
    }
    if let Some(result) = message.result
        && let Some(with) = insert_meta(bytes, result, "k", "1")
    {
        serde_json::from_slice::<serde::de::IgnoredAny>(&with).expect("still JSON");
    }
    let text = std::str::from_utf8(bytes).expect("parsed");
    serde_json::from_str::<serde::de::IgnoredAny>(&mask(text)).expect("still JSON");
}
