//! Ranges of numbers that are reserved, or for extensions.

/// Both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Range {
    first: i32,
    last: i32,
}

impl Range {
    /// A range of a message, whose end is excluded. `None` when it is empty.
    pub(super) fn until(start: Option<i32>, end: Option<i32>) -> Option<Self> {
        Self::to(start, end.map(|end| end.saturating_sub(1)))
    }

    /// A range of an enum, whose end is included. `None` when it is empty.
    pub(super) fn to(start: Option<i32>, end: Option<i32>) -> Option<Self> {
        let (first, last) = (start.unwrap_or_default(), end.unwrap_or_default());
        (first <= last).then_some(Self { first, last })
    }

    pub(super) fn contains(self, number: i32) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// As the language writes it.
    pub(super) fn text(self, number_max: i32) -> String {
        let Self { first, last } = self;
        if first == last {
            first.to_string()
        } else if last >= number_max {
            format!("{first} to max")
        } else {
            format!("{first} to {last}")
        }
    }
}

/// As the language lists them.
pub(super) fn list(ranges: &[Range], number_max: i32) -> String {
    let ranges = ranges.iter().map(|range| range.text(number_max));
    ranges.collect::<Vec<_>>().join(", ")
}

/// The old ranges of which something is in no new one, with what that is.
pub(super) fn missing(old: &[Range], new: &[Range]) -> Vec<(Range, Vec<Range>)> {
    let mut new = new.to_vec();
    new.sort_unstable();
    let missing = old.iter().map(|range| (*range, without(*range, &new)));
    missing.filter(|(_, missing)| !missing.is_empty()).collect()
}

/// What of a range is in none of others, which are sorted.
fn without(range: Range, others: &[Range]) -> Vec<Range> {
    let mut missing = Vec::new();
    // Wider than the numbers, so that the one behind the last exists.
    let mut next = i64::from(range.first);
    for other in others {
        if i64::from(other.last) < next || other.first > range.last {
            continue;
        }
        if i64::from(other.first) > next {
            missing.extend(span(next, i64::from(other.first) - 1));
        }
        next = i64::from(other.last) + 1;
    }
    if next <= i64::from(range.last) {
        missing.extend(span(next, i64::from(range.last)));
    }
    missing
}

fn span(first: i64, last: i64) -> Option<Range> {
    Some(Range {
        first: i32::try_from(first).ok()?,
        last: i32::try_from(last).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i32, last: i32) -> Range {
        Range { first, last }
    }

    #[test]
    fn what_is_missing_is_what_no_new_range_has() {
        for (old, new, missing_text) in [
            (range(1, 9), &[range(1, 9)][..], ""),
            (range(1, 9), &[range(5, 9), range(1, 4)], ""),
            (range(1, 9), &[range(i32::MIN, i32::MAX)], ""),
            (range(1, 9), &[], "1 to 9"),
            (
                range(1, 9),
                &[range(3, 4), range(8, 8)],
                "1 to 2, 5 to 7, 9",
            ),
            (range(1, 9), &[range(1, 6), range(2, 3)], "7 to 9"),
            (range(5, i32::MAX), &[range(6, 7)], "5, 8 to max"),
            (range(i32::MIN, 0), &[range(0, 3)], "-2147483648 to -1"),
        ] {
            let found = missing(&[old], new);
            let found = found.first().map_or(&[][..], |(_, missing)| missing);
            assert_eq!(list(found, i32::MAX), missing_text, "{old:?} {new:?}");
        }
    }
}
