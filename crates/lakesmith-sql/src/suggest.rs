//! "Did you mean": the nearest of some names.

/// The candidate nearest to `name` by edit distance, case aside, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near_and_other_words_are_not() {
        assert_eq!(nearest("OPTIMISE", ["REORG", "OPTIMIZE"]), Some("OPTIMIZE"));
        assert_eq!(nearest("lakesmith.thread", ["lakesmith.threads", "lakesmith.memory"]), Some("lakesmith.threads"));
        assert_eq!(nearest("FROB", ["OPTIMIZE", "REORG"]), None);
    }
}
