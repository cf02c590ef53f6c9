//! How much stack a file needs, before it is parsed.
//!
//! The parser and the symbol table recurse over nesting, and so would end the
//! whole process on hostile or generated input. A linear look at the bytes
//! bounds the nesting from above: ordinary files (all but one in a thousand)
//! are then lowered where they are, others on a thread with a stack that is
//! large enough, and beyond [`MAX_NESTING`] the file is refused.
//!
//! Measured with oxc 0.146, in bytes of stack per level, release / debug:
//! nested classes 1,200 / 3,500 per bracket, arrays 1,600 / 2,100, `if` 360 /
//! 430, unary operators 200 / 900; links of a chain (`a + b + …`, `a.b.c…`,
//! which only nest to the left) 85 / 390.

use crate::LowerError;
use scan::Scan;

mod scan;

/// Levels of brackets, operators and statements inside each other. Parsing is
/// quadratic in some of them; this many take half a second.
pub(crate) const MAX_NESTING: u32 = 20_000;
/// Links of the longest operator, member or call chain.
pub(crate) const MAX_LINKS: u32 = 1_000_000;
/// `a < b < c`: at each, the parser looks whether type arguments begin, and
/// whether some begin inside those. That is cubic.
const MAX_ANGLES: u32 = 400;

/// What fits on any thread's stack (2 MB) in a debug build.
const NESTING_HERE: u32 = 100;
const LINKS_HERE: u32 = 500;

const BASE: usize = 4 << 20;
const PER_NESTING: usize = 8 << 10;
const PER_LINK: usize = 512;
const LARGEST: usize = 1 << 30;
/// For text that can be read in two ways: every byte may be a level.
const PER_BYTE: usize = 2 << 10;

/// Where to lower a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stack {
    Here,
    Own {
        /// Enough for every reading of the text.
        wanted: usize,
        /// Enough for the likely one, if the system has not got the other.
        least: usize,
    },
}

/// What the look at the bytes told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) stack: Stack,
    pub(crate) inner_classes: bool,
}

pub(crate) fn plan(path: &str, text: &str) -> Result<Plan, LowerError> {
    let is_typescript = [".ts", ".mts", ".cts"]
        .iter()
        .any(|end| path.ends_with(end));
    let found = scan::scan(text.as_bytes(), !is_typescript);
    Ok(Plan {
        stack: decide(found, text.len())?,
        inner_classes: found.inner_classes || found.ambiguous,
    })
}

fn decide(found: Scan, length: usize) -> Result<Stack, LowerError> {
    let refuse = |what: &str, limit: u32| {
        Err(LowerError {
            message: format!("{what} deeper than {limit} levels"),
            line: found.line,
        })
    };
    if found.nesting > MAX_NESTING {
        return refuse("nested", MAX_NESTING);
    }
    if found.links > MAX_LINKS {
        return refuse("operators chained", MAX_LINKS);
    }
    if found.angles > MAX_ANGLES {
        return refuse("`<` nested", MAX_ANGLES);
    }
    if !found.ambiguous && found.nesting <= NESTING_HERE && found.links <= LINKS_HERE {
        return Ok(Stack::Here);
    }
    let least = BASE + found.nesting as usize * PER_NESTING + found.links as usize * PER_LINK;
    let wanted = if found.ambiguous {
        least.max(length.saturating_mul(PER_BYTE).min(LARGEST))
    } else {
        least
    };
    Ok(Stack::Own { wanted, least })
}

#[cfg(test)]
mod tests {
    use super::{LowerError, MAX_NESTING, Stack, plan, scan};

    fn stack_for(path: &str, text: &str) -> Result<Stack, LowerError> {
        plan(path, text).map(|plan| plan.stack)
    }

    fn nesting(text: &str) -> (u32, u32) {
        let found = scan::scan(text.as_bytes(), false);
        (found.nesting, found.links)
    }

    #[test]
    fn ordinary_code_is_shallow() {
        let text = "import a from 'b';\nexport async function f(x: Map<string, number>) {\n  \
                    const y = await g(x.a.b, `t${x}`)\n  if (y) { return [1, { z: -1 }] } else if (x) { h() }\n}\n"
            .repeat(500);
        let (nesting, links) = nesting(&text);
        assert!(nesting < 30, "{nesting}");
        assert!(links < 30, "{links}");
        assert!(matches!(stack_for("a.ts", &text), Ok(Stack::Here)));
    }

    #[test]
    fn code_without_semicolons_is_shallow() {
        let text = "const a = b\nfoo()\nbar(c).d\nlet e = [1]\nif (x)\n  y()\nelse\n  z()\nf = g ? h : i\n"
            .repeat(500);
        let (nesting, links) = nesting(&text);
        assert!(nesting < 30, "{nesting}");
        assert!(links < 30, "{links}");
    }

    #[test]
    fn every_way_to_nest_is_seen() {
        for unit in [
            "[",
            "(",
            "{",
            "if(a)",
            "if(a)b;else ",
            "if(a){b}else ",
            "a=>",
            "(a)=>",
            "!",
            "- ",
            "typeof ",
            "await ",
            "new ",
            "a?b:",
            "a?",
            "a=",
            "a**",
            "`${",
            "for(;;)",
            "while(a)",
            "do ",
            "try{",
            "a:",
            "f(",
            "x[a,",
            "{a:1,b:",
            "f(a,g=>",
            "typeof\n",
            "await\n",
            "if(a)\n",
            "if(a)b\nelse\n",
            "A<B,",
            "if(a) x, [",
            "keyof ",
            "A extends B ? C : ",
            "do a; while(",
            "void ",
            "delete ",
            "yield ",
            "~",
            "class{a=",
            "class A{m(){",
            "switch(a){case 1:",
            "\"(\"+[",
            "[`]`,",
            "[/]/,",
            "// }\n{",
            "/* ] */[",
            "[']',",
        ] {
            let text = format!("x = {}", unit.repeat(1_000));
            let (nesting, _) = nesting(&text);
            assert!(nesting >= 1_000, "{unit:?}: {nesting}");
        }
    }

    #[test]
    fn every_chain_is_seen() {
        for unit in [
            " + a", ".b", "[0]", "()", "?.b", " && a", " ?? a", "``", " as A", "!", " in a",
            " == a", " - a", ".b()", "\n.b()", " <= a",
        ] {
            let text = format!("x = a{}", unit.repeat(1_000));
            let (nesting, links) = nesting(&text);
            assert!(nesting + links >= 1_000, "{unit:?}: {nesting} {links}");
        }
    }

    #[test]
    fn too_deep_is_refused() {
        let text = "[".repeat(MAX_NESTING as usize + 10);
        let error = stack_for("a.ts", &text).map_err(|e| e.message);
        assert_eq!(error, Err("nested deeper than 20000 levels".to_owned()));
    }
}
