//! What somebody may have meant.

/// The known name that needs the fewest edits, if these are few for its length.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(2);
    let best = known.into_iter().map(|other| (distance(name, other), other)).min();
    best.filter(|(distance, other)| *distance <= limit && *distance < other.chars().count()).map(|(_, other)| other)
}

/// How many characters to insert, to remove, to replace or to swap with the next (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger() {
        let known = ["podnet", "prod", "backend-v6"];
        assert_eq!(nearest("pdonet", known), Some("podnet"));
        assert_eq!(nearest("podnt", known), Some("podnet"));
        assert_eq!(nearest("Prod", known), Some("prod"));
        assert_eq!(nearest("bakcend-v6", known), Some("backend-v6"));
        assert_eq!(nearest("elsewhere", known), None);
        assert_eq!(nearest("x", ["a", "b"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
