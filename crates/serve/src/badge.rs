//! A badge: the grade as a small picture.

const GOOD: &str = "#2e7d32";
const FAIR: &str = "#9a6700";
const BAD: &str = "#b3261e";
const NONE: &str = "#57606a";

/// Letters of Verdana at 11 pixels are about this wide.
const LETTER: usize = 7;

/// `value` is one of our own words: a grade, or why there is none.
pub(crate) fn svg(value: &str) -> String {
    let color = match value.get(..1) {
        _ if value.len() > 12 => NONE,
        Some("A" | "B") => GOOD,
        Some("C") => FAIR,
        Some("D" | "F") => BAD,
        _ => NONE,
    };
    let label = "toctou";
    let left = label.len() * LETTER + 12;
    let right = value.len() * LETTER + 12;
    let (whole, a, b) = (left + right, left / 2, left + right / 2);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{label}: {value}"><title>{label}: {value}</title><clipPath id="r"><rect width="{whole}" height="20" rx="3"/></clipPath><g clip-path="url(#r)"><rect width="{left}" height="20" fill="#24292f"/><rect x="{left}" width="{right}" height="20" fill="{color}"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="{a}" y="14">{label}</text><text x="{b}" y="14">{value}</text></g></svg>"##
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn tells_the_grade() {
        let svg = super::svg("C 73");
        assert!(svg.contains("aria-label=\"toctou: C 73\""), "{svg}");
        assert!(svg.contains(super::FAIR));
        assert!(super::svg("not scanned").contains(super::NONE));
    }
}
