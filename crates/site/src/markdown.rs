//! Markdown to HTML, with links looked after.

use std::collections::{BTreeSet, HashMap};

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// What a link becomes, or why it cannot be one.
pub(crate) type Resolve<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

fn parse(text: &str) -> Vec<Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).collect()
}

/// The names that headings can be linked by.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let events = parse(text);
    let mut seen = HashMap::new();
    let mut found = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        if matches!(event, Event::Start(Tag::Heading { .. })) {
            found.insert(slug(&words(&events[index + 1..]), &mut seen));
        }
    }
    found
}

/// The page's body, and what is wrong with its links.
pub(crate) fn render(text: &str, resolve: &mut Resolve<'_>) -> (String, Vec<String>) {
    let events = parse(text);
    let mut seen = HashMap::new();
    let mut faults = Vec::new();
    let mut follow = |url: &CowStr<'_>| -> CowStr<'static> {
        match resolve(url) {
            Ok(address) => CowStr::from(address),
            Err(fault) => {
                faults.push(fault);
                CowStr::from(url.to_string())
            }
        }
    };
    let mut out = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        let event = match event.clone() {
            Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
                level,
                id: Some(CowStr::from(slug(&words(&events[index + 1..]), &mut seen))),
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => Event::Start(Tag::Link {
                link_type,
                dest_url: follow(&dest_url),
                title,
                id,
            }),
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            }) => Event::Start(Tag::Image {
                link_type,
                dest_url: follow(&dest_url),
                title,
                id,
            }),
            // What is wider than the page scrolls by itself, by keyboard too.
            Event::Start(Tag::CodeBlock(_)) => Event::Html("<pre tabindex=\"0\"><code>".into()),
            Event::End(TagEnd::CodeBlock) => Event::Html("</code></pre>\n".into()),
            Event::Start(Tag::Table(columns)) => {
                out.push(Event::Html("<div class=\"wide\" tabindex=\"0\">".into()));
                Event::Start(Tag::Table(columns))
            }
            Event::End(TagEnd::Table) => {
                out.push(Event::End(TagEnd::Table));
                Event::Html("</div>\n".into())
            }
            // "Made by …, do not edit": for those who edit.
            Event::Html(text) if text.starts_with("<!--") => continue,
            event => event,
        };
        out.push(event);
    }
    let mut page = String::new();
    html::push_html(&mut page, out.into_iter());
    (page, faults)
}

/// The text of a heading.
fn words(events: &[Event<'_>]) -> String {
    let mut out = String::new();
    for event in events {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(text) | Event::Code(text) => out += text,
            _ => {}
        }
    }
    out
}

/// As GitHub does it, since the same links work there.
fn slug(text: &str, seen: &mut HashMap<String, u32>) -> String {
    let slug: String = text
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect();
    let count = seen.entry(slug.clone()).or_default();
    *count += 1;
    if *count == 1 {
        slug
    } else {
        format!("{slug}-{}", *count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_linked_as_on_github() {
        let found = anchors("# The `toctou` page, 2nd\n\n## Fix\n\n## Fix\n");
        let expected = ["the-toctou-page-2nd", "fix", "fix-1"];
        assert_eq!(found, expected.map(str::to_owned).into());
    }

    #[test]
    fn links_are_followed_and_faults_kept() {
        let (page, faults) = render(
            "<!-- made -->\n# A\n\n[x](b.md) ![y](gone.png)\n\n```ts bad\na < b\n```\n",
            &mut |url| {
                if url == "b.md" {
                    Ok("b.html".to_owned())
                } else {
                    Err(format!("{url} is not there"))
                }
            },
        );
        assert!(page.contains("<h1 id=\"a\">A</h1>"), "{page}");
        assert!(page.contains("<a href=\"b.html\">x</a>"), "{page}");
        assert!(
            page.contains("<pre tabindex=\"0\"><code>a &lt; b"),
            "{page}"
        );
        assert!(!page.contains("made"), "{page}");
        assert_eq!(faults, ["gone.png is not there"]);
    }
}
