//! Our own pages: plain HTML that works without scripts, and nothing of a
//! stranger's in it that is not text.

use std::fmt::Write as _;

use super::answer::{Problem, html_text};
use super::api::time;
use super::service::SiteOptions;
use crate::store::{Job, State};

/// On the front page.
pub(super) const LISTED: i64 = 20;

pub(super) const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#3b4fb8"/><path d="M4 3.5v9M12 3.5v9M4 6h5M12 10H7" fill="none" stroke="#fff" stroke-width="1.5" stroke-linecap="round"/></svg>"##;
/// In a raw string, `"#` would end it.
const MAIN: &str = "#main";
const MARK: &str = r#"<svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true"><path d="M3 2.5v11M13 2.5v11M3 5h6.5M13 11H6.5" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"/></svg>"#;

fn shell(title: &str, head: &str, main: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="/favicon.ico" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
<script src="/assets/page.js" defer></script>
{head}</head>
<body>
<a class="skip" href="{MAIN}">Skip to the content</a>
<header class="bar"><a class="brand" href="/">{MARK}<span>toctou</span></a></header>
<main id="main" tabindex="-1">
{main}</main>
<footer class="foot"><p>No finding does not mean that there is no race. <a href="/api/openapi.json">API</a></p></footer>
</body>
</html>
"#
    )
}

pub(super) fn front(jobs: &[Job], options: &SiteOptions) -> String {
    let mut main = format!(
        r#"<section class="hero" aria-labelledby="headline">
<h1 id="headline">Can its tool calls race?</h1>
<p class="lead">Give the source of an MCP server. It is read, not run; the report shows which calls can corrupt what, step by step.</p>
<form class="ask" method="post" action="/scans" enctype="multipart/form-data">
<label for="source">Repository or package</label>
<div class="line"><input id="source" name="source" type="text" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="2000" placeholder="https://github.com/owner/name" aria-describedby="forms"><button type="submit">Scan</button></div>
<p class="hint" id="forms"><code>owner/name@ref#folder</code>, <code>npm:name@version</code> and <code>pypi:name==version</code> work too.</p>
<label class="drop" for="archive" id="drop"><span><strong>Or drop a zip</strong> of the source here, or choose one ({} MB at most). Its report is not listed.</span><input id="archive" name="archive" type="file" accept=".zip,.tgz,.whl,application/zip,application/gzip"></label>
</form>
</section>
"#,
        options.max_upload >> 20
    );
    main += "<section aria-labelledby=\"recent\">\n<h2 id=\"recent\">Reports</h2>\n";
    if jobs.is_empty() {
        main += "<p class=\"none\">None yet.</p>\n";
    } else {
        main += "<ul class=\"reports\">\n";
        for job in jobs {
            let _ = writeln!(
                main,
                r#"<li><a class="badge" href="{place}"><img src="/badge/{id}.svg" height="20" alt="{alt}"></a><a class="name" href="/scans/{id}">{source}</a><span class="when">{what}</span></li>"#,
                place = place(job),
                id = job.id,
                alt = html_text(&grade_in_words(job)),
                source = html_text(&job.source),
                what = html_text(&facts(job)),
            );
        }
        main += "</ul>\n";
        if let Some(last) = jobs.last().filter(|_| jobs.len() as i64 == LISTED) {
            let _ = writeln!(
                main,
                "<p><a href=\"/?before={}\">Older reports</a></p>",
                last.number
            );
        }
    }
    main += "</section>\n";
    shell("toctou: race conditions in MCP servers", "", &main)
}

/// One scan: how far it is, or how it ended.
pub(super) fn scan(job: &Job, base: &str) -> String {
    let source = html_text(&job.source);
    let id = &job.id;
    // Without scripts the page asks again by itself.
    let head = if job.state.is_over() {
        ""
    } else {
        "<noscript><meta http-equiv=\"refresh\" content=\"2\"></noscript>\n"
    };
    let mut main = format!(
        "<section class=\"scan\" aria-labelledby=\"headline\">\n<h1 id=\"headline\">{source}</h1>\n"
    );
    match job.state {
        State::Queued | State::Running => {
            let text = if job.state == State::Queued {
                "waiting for a free worker"
            } else {
                &job.progress
            };
            let _ = writeln!(
                main,
                r#"<div class="progress" data-scan="{id}"><progress aria-label="Scanning"></progress><p id="progress" role="status">{}</p></div>
<p class="hint">This address stays; you can come back to it.</p>"#,
                html_text(text)
            );
        }
        State::Failed => {
            let _ = writeln!(
                main,
                "<div class=\"failed\" role=\"alert\"><p><strong>This could not be scanned.</strong></p><pre>{}</pre></div>\n<p><a href=\"/\">Try another</a></p>",
                html_text(job.error.as_deref().unwrap_or("no reason is known"))
            );
        }
        State::Done => {
            let badge = format!("[![toctou]({base}/badge/{id}.svg)]({base}/r/{id})");
            let _ = writeln!(
                main,
                r#"<p class="result"><a href="/r/{id}"><img src="/badge/{id}.svg" height="20" alt="{alt}"></a> {facts}</p>
<p class="go"><a class="button" href="/r/{id}">Open the report</a> <a href="/api/scans/{id}/report.json">JSON</a></p>
<h2>Badge</h2>
<p class="hint"><label for="badge">For a README; it leads to the report.</label></p>
<textarea id="badge" readonly rows="3" spellcheck="false">{snippet}</textarea>"#,
                alt = html_text(&grade_in_words(job)),
                facts = html_text(&facts(job)),
                snippet = html_text(&latest(job, base).unwrap_or(badge)),
            );
        }
    }
    main += "</section>\n";
    shell(&format!("{source} · toctou"), head, &main)
}

/// The badge of an address follows its newest report.
fn latest(job: &Job, base: &str) -> Option<String> {
    let place = job.source.strip_prefix("https://")?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"./-_~@:".contains(&b);
    let fits = !job.is_upload && place.bytes().all(plain);
    fits.then(|| {
        format!(
            "[![toctou]({base}/badge/latest/{place}.svg)]({base}/r/{})",
            job.id
        )
    })
}

pub(super) fn problem(problem: &Problem) -> String {
    let mut main = format!(
        "<section class=\"failed\" role=\"alert\">\n<h1>{}</h1>\n",
        html_text(&problem.what)
    );
    if let Some(hint) = &problem.hint {
        let _ = writeln!(main, "<p>{}</p>", html_text(hint));
    }
    main += "<p><a href=\"/\">Back to the start</a></p>\n</section>\n";
    shell(&format!("{} · toctou", html_text(&problem.what)), "", &main)
}

fn place(job: &Job) -> String {
    match job.state {
        State::Done => format!("/r/{}", job.id),
        _ => format!("/scans/{}", job.id),
    }
}

fn grade_in_words(job: &Job) -> String {
    match (job.state, &job.grade, job.score) {
        (State::Done, Some(grade), Some(score)) => {
            format!(
                "grade {grade}, {score} of 100: open the report of {}",
                job.source
            )
        }
        (state, ..) => format!("{}: {}", state.as_str(), job.source),
    }
}

/// `6 findings · 1a2b3c4d5e6f · 2026-01-31 12:00`
fn facts(job: &Job) -> String {
    let mut facts = Vec::new();
    match job.findings {
        Some(1) => facts.push("1 finding".to_owned()),
        Some(count) => facts.push(format!("{count} findings")),
        None => facts.push(job.state.as_str().to_owned()),
    }
    if let Some(revision) = &job.revision {
        facts.push(revision.chars().take(12).collect());
    }
    let when = time(job.finished.unwrap_or(job.created));
    facts.push(when.replace('T', " ").chars().take(16).collect());
    facts.join(" · ")
}
