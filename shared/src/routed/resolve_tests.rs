use std::os::unix::fs::PermissionsExt;

use super::*;

/// A getent that is a script; `$3` is the name.
fn getent(folder: &tempfile::TempDir, script: &str, patience: u64) -> Getent {
    let program = folder.path().join("getent");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    Getent { program: Some(program), patience: Duration::from_millis(patience) }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn each_name_gets_its_own_answer() {
    let folder = tempfile::tempdir().unwrap();
    let script = "[ \"$1 $2\" = 'ahosts --' ] || exit 9
        case $3 in
        many*) echo \"10.0.0.${3#many} STREAM x\"; echo \"10.0.0.${3#many} DGRAM\"; echo 'fd00::1 RAW';;
        self) echo '127.0.1.1 STREAM self'; echo 'fe80::1%2 STREAM'; echo '::1 RAW';;
        odd) exit 1;;
        empty) ;;
        *) exit 2;; esac";
    let getent = getent(&folder, script, 10_000);
    let many: Vec<String> = (1..=200).map(|n| format!("many{n}")).collect();
    let names = ["self", "gone.lan", "odd", "empty", "-x", "a b", "10.1", "", "../x"];
    let names: Vec<&str> = names.into_iter().chain(many.iter().map(String::as_str)).collect();
    let answers = getent.lookup(&names);
    assert!(
        matches!(&answers[0], Err(LookupError::Unusable { addresses, .. }) if *addresses == [ip("127.0.1.1"), ip("::1")])
    );
    assert!(matches!(&answers[1], Err(LookupError::NotFound(name)) if name == "gone.lan"));
    assert!(matches!(&answers[2], Err(LookupError::Failed { .. })));
    assert!(matches!(&answers[3], Err(LookupError::NotFound(_))));
    for answer in &answers[4..9] {
        assert!(matches!(answer, Err(LookupError::NotAName(_))), "{answer:?}");
    }
    for (n, answer) in answers[9..].iter().enumerate() {
        assert_eq!(answer.as_ref().unwrap(), &[ip(&format!("10.0.0.{}", n + 1)), ip("fd00::1")]);
    }
}

#[test]
fn all_wait_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let getent = getent(&folder, "case $3 in slow*) exec sleep 60;; *) echo 10.0.0.1;; esac", 300);
    let names: Vec<String> = (0..40).map(|n| format!("slow{n}")).chain(["quick".to_owned()]).collect();
    let before = Instant::now();
    let answers = getent.lookup(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(before.elapsed() < Duration::from_secs(6), "one after the other would be 12 s: {:?}", before.elapsed());
    assert!(answers[..40].iter().all(|answer| matches!(answer, Err(LookupError::TimedOut { .. }))));
    assert_eq!(answers[40].as_ref().unwrap(), &[ip("10.0.0.1")]);
    let text = answers[0].as_ref().unwrap_err().to_string();
    assert_eq!(text, "no answer for slow0 within 300 ms: is DNS down?");
}

#[test]
fn more_than_are_looked_up_at_a_time_wait_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let getent = getent(&folder, "exec sleep 60", 2500);
    let names: Vec<String> = (0..AT_A_TIME + 20).map(|n| format!("slow{n}")).collect();
    let before = Instant::now();
    let answers = getent.lookup(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(before.elapsed() < Duration::from_millis(4900), "in two rounds it would be 5 s: {:?}", before.elapsed());
    assert!(answers.iter().all(|answer| matches!(answer, Err(LookupError::TimedOut { .. }))));
}

#[test]
fn a_missing_program_is_named() {
    let none = Getent { program: None, patience: PATIENCE };
    let text = none.lookup(&["a"])[0].as_ref().unwrap_err().to_string();
    assert!(text.contains("getent") && text.contains("libc-bin"), "{text}");
    let gone = Getent { program: Some("/nowhere/getent".into()), patience: PATIENCE };
    assert!(matches!(gone.lookup(&["a"])[0], Err(LookupError::Io { .. })));
}

#[test]
fn the_real_one_knows_localhost() {
    let answers = Getent::default().lookup(&["localhost"]);
    assert!(matches!(&answers[0], Err(LookupError::Unusable { .. })), "{answers:?}");
}
