//! Skipping what is not code: strings, templates, comments, regular expressions.

use memchr::{memchr, memchr_iter};

use super::{Bracket, Last, Scanner};

impl Scanner<'_> {
    /// To the closing quote, or the end of the line where it is missing.
    pub(super) fn string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'\n' => return,
                _ => {
                    self.at += 1;
                    if byte == quote {
                        return;
                    }
                }
            }
        }
    }

    /// Template text, up to its end or the next `${`.
    pub(super) fn template(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    self.operand(b'`');
                    return;
                }
                b'$' if self.peek(1) == b'{' => {
                    self.at += 2;
                    self.push(Bracket::Template, false);
                    self.after_operator(b'(');
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    pub(super) fn slash(&mut self) {
        match self.peek(1) {
            b'/' => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                self.at += memchr(b'\n', rest).unwrap_or(rest.len());
            }
            b'*' => {
                self.at += 2;
                let rest = self.text.get(self.at..).unwrap_or_default();
                let closes = |at: &usize| *at > 0 && rest.get(at - 1) == Some(&b'*');
                let end = memchr_iter(b'/', rest).find(closes);
                let length = end.map_or(rest.len(), |slash| slash - 1);
                self.newline |= memchr(b'\n', rest.get(..length).unwrap_or_default()).is_some();
                self.at += length + 2;
            }
            next => {
                if self.jsx && next == b'>' {
                    self.found.ambiguous = true;
                    self.jsx_depth = self.jsx_depth.saturating_sub(1);
                }
                match self.last {
                    Last::Operator | Last::Head => self.regex(),
                    Last::Operand | Last::Close | Last::Brace => {
                        if self.last != Last::Operand && self.may_be_regex() {
                            self.found.ambiguous = true;
                        }
                        self.link();
                        self.at += 1;
                        self.after_operator(b'/');
                    }
                }
            }
        }
    }

    /// After `)` or `}`: would it matter if a regular expression began here?
    fn may_be_regex(&self) -> bool {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let mut telling = false;
        for &byte in rest {
            match byte {
                b'\n' => return false,
                b'/' => return telling,
                b'"' | b'\'' | b'`' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'\\' => {
                    telling = true;
                }
                _ => {}
            }
        }
        false
    }

    fn regex(&mut self) {
        self.at += 1;
        let mut class = false;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'\n' => break,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => {
                    self.at += 1;
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.operand(b'/');
    }
}
