//! Restricts threads of the test process, and reads their status from `/proc`.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use privileges::{KeptAccess, RestrictionReport, restrict_thread};

/// Runs `body` in a thread of its own, since restrictions last as long as their thread.
fn in_thread<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(body).join().expect("the thread does not panic")
}

/// Returns a field of the calling thread's status.
fn status(field: &str) -> String {
    let text = fs::read_to_string("/proc/thread-self/status").expect("proc is mounted");
    let line = text.lines().find(|line| line.starts_with(&format!("{field}:"))).expect("a field of the status");
    line.split_once(':').expect("a colon").1.trim().to_owned()
}

/// A directory that is removed with its files.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("privileges-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Restricts the thread; `None` if the kernel cannot restrict files.
fn restrict_files(kept: &KeptAccess) -> Option<RestrictionReport> {
    let report = restrict_thread(kept).expect("nothing needs a privilege");
    report.restricts_files().then_some(report)
}

#[test]
fn a_restricted_thread_and_its_children_have_no_capabilities() {
    let kept = KeptAccess::default().reading("/proc");
    let read = || ["CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs"].map(status);
    let (own, child) = in_thread(move || {
        restrict_thread(&kept).expect("nothing needs a privilege");
        (read(), in_thread(read))
    });
    let none = "0".repeat(16);
    assert_eq!(own, [&none, &none, &none, &none, "1"].map(str::to_owned));
    assert_eq!(child, own);
    assert_eq!(status("NoNewPrivs"), "0", "other threads keep their privileges");
}

#[test]
fn a_privileged_thread_empties_its_bounding_set() {
    // CAP_SETPCAP
    let may = u64::from_str_radix(&status("CapEff"), 16).expect("a hexadecimal set") & (1 << 8) != 0;
    if !may {
        return testing::skip("needs root");
    }
    let bounding = in_thread(|| {
        restrict_thread(&KeptAccess::default().reading("/proc")).expect("nothing needs a privilege");
        status("CapBnd")
    });
    assert_eq!(bounding, "0".repeat(16));
}

#[test]
fn only_the_kept_files_can_be_opened() {
    let (directory, other) = (Directory::new("kept"), Directory::new("other"));
    let (rules, secret) = (directory.0.join("rules"), other.0.join("secret"));
    fs::write(&rules, "rules").unwrap();
    fs::write(&secret, "secret").unwrap();
    let kept = KeptAccess::default().writing(&directory.0);
    let outcome = in_thread(move || {
        let mut open = fs::File::open(&secret).unwrap();
        restrict_files(&kept)?;
        fs::write(rules.with_extension("new"), "new").expect("a kept directory is writable");
        fs::rename(rules.with_extension("new"), &rules).expect("its files can be replaced");
        assert_eq!(fs::read_to_string(&rules).expect("and read"), "new");
        let mut text = String::new();
        open.read_to_string(&mut text).expect("an open file stays open");
        assert_eq!(text, "secret");
        let make = fs::create_dir(rules.with_extension("directory"));
        Some([fs::read(&secret).map(drop), fs::remove_file(&secret), make].map(|result| result.map_err(|e| e.kind())))
    });
    let Some(refused) = outcome else { return testing::skip("needs a kernel with Landlock") };
    assert_eq!(refused, [Err(ErrorKind::PermissionDenied); 3]);
}

#[test]
fn a_readable_file_is_not_writable() {
    let directory = Directory::new("readable");
    let file = directory.0.join("file");
    fs::write(&file, "text").unwrap();
    let kept = KeptAccess::default().reading(&directory.0);
    let outcome = in_thread(move || {
        restrict_files(&kept)?;
        assert_eq!(fs::read_to_string(&file).expect("it is readable"), "text");
        Some(fs::write(&file, "").map_err(|error| error.kind()))
    });
    let Some(refused) = outcome else { return testing::skip("needs a kernel with Landlock") };
    assert_eq!(refused, Err(ErrorKind::PermissionDenied));
}

#[test]
fn connections_are_possible_only_if_they_are_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = move |kept: KeptAccess| {
        in_thread(move || {
            restrict_files(&kept)?;
            let bound = TcpListener::bind("127.0.0.1:0").map(drop).map_err(|error| error.kind());
            Some((TcpStream::connect(address).map(drop).map_err(|error| error.kind()), bound))
        })
    };
    let denied = Err(ErrorKind::PermissionDenied);
    match connect(KeptAccess::default()) {
        // Landlock restricts TCP since its version 4.
        Some((Ok(()), Ok(()))) | None => return testing::skip("needs a kernel with Landlock for TCP"),
        Some(outcome) => assert_eq!(outcome, (denied, denied)),
    }
    assert_eq!(connect(KeptAccess::default().connecting()), Some((Ok(()), denied)));
}

#[test]
fn a_path_that_only_root_may_use_is_an_error() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let directory = Directory::new("foreign");
    if chown(&directory.0, Some(12_345), Some(12_345)).is_err() {
        return testing::skip("needs root");
    }
    fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o700)).unwrap();
    let kept = KeptAccess::default().writing(&directory.0);
    let error = in_thread(move || restrict_thread(&kept).expect_err("it belongs to another user"));
    let expected = format!("{} is not accessible without root's capabilities", directory.0.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn paths_that_do_not_exist_are_no_mistake() {
    let kept = KeptAccess::default().reading("/nonexistent/file").writing("/nonexistent/directory");
    assert!(in_thread(move || restrict_thread(&kept).is_ok()));
}
