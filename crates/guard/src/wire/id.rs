//! Ids of requests, compared by value.

use std::fmt;

use super::Raw;

/// The id of a request. Servers may write `1.0` as `1` and `"\u0061"` as `"a"`
/// when they answer, so ids are compared by what they mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    Integer(i64),
    /// Bits of a number that is no `i64`.
    Number(u64),
    Text(Box<str>),
}

/// Numbers up to here are exact in every language.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Id {
    /// `None` if it is no id: null, a boolean, an object, an array.
    pub fn read(raw: Raw<'_>) -> Option<Self> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'"' => raw.text().map(|text| Self::Text(text.into())),
            b'-' | b'0'..=b'9' => {
                if let Ok(integer) = text.parse::<i64>() {
                    return Some(Self::Integer(integer));
                }
                let number = text.parse::<f64>().ok()?;
                #[expect(clippy::cast_possible_truncation, reason = "checked to be exact")]
                Some(if number.fract() == 0.0 && number.abs() <= EXACT {
                    Self::Integer(number as i64)
                } else {
                    Self::Number(number.to_bits())
                })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Number(bits) => f64::from_bits(*bits).fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}
