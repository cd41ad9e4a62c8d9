//! Sorting, with little code: the standard library's sort is 6 kB for each type that is sorted, and what is sorted here is
//! sorted once in a while. The order is found among numbers by one sort for all, and then applied.

use std::cmp::Ordering;

/// Sorts what has an order of its own. Equals keep theirs.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts by what `key` says of each. Equals keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts by comparing two. Equals keep their order.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..items.len()).collect();
    find(&mut order, &|a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    apply(&mut order, &mut |a, b| items.swap(a, b));
}

fn find(order: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    order.sort_by(|a, b| compare(*a, *b));
}

/// Moves to each place what its number says, cycle by cycle.
fn apply(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut place = start;
        while let Some(from) = order.get_mut(place).map(|from| std::mem::replace(from, place)) {
            if from == start || from == place {
                break;
            }
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_the_standard_library_sorts(mut items: Vec<(u8, u8)>) {
            let mut whole = items.clone();
            whole.sort();
            let mut by_first = items.clone();
            by_first.sort_by_key(|item| item.0);
            let mut ours = items.clone();
            sort_by_key(&mut ours, |item| item.0);
            prop_assert_eq!(ours, by_first);
            sort(&mut items);
            prop_assert_eq!(items, whole);
        }
    }
}
