//! The name that somebody meant.

/// The one of `names` that is the fewest changes away from `typed`, if they are few.
pub(crate) fn nearest<'a>(
    typed: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = (typed.chars().count() / 3).max(1);
    let distances = names.into_iter().map(|name| (distance(typed, name), name));
    let near = distances.filter(|(distance, _)| *distance <= allowed);
    near.min().map(|(_, name)| name)
}

/// How many letters have to be changed, added or left out (Levenshtein); an exchange of
/// neighbours is two.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let names = ["listen", "limits", "drain_limit"];
        for (typed, meant) in [
            ("lsiten", Some("listen")),
            ("limit", Some("limits")),
            ("drain_limits", Some("drain_limit")),
            ("listen", Some("listen")),
            ("port", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
        }
    }
}
