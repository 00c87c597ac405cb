//! What the probe may not import: calls that kill a static program on a node with another C library.

const FORBIDDEN: [&str; 11] = [
    "getaddrinfo",
    "getnameinfo",
    "gethostbyname",
    "gethostbyname_r",
    "getpwnam",
    "getpwnam_r",
    "getpwuid",
    "getpwuid_r",
    "getgrnam_r",
    "getgrgid_r",
    "iconv_open",
];

/// Whether a name of `binary`'s symbol tables ends in `symbol`; `@` begins its version.
fn names(binary: &[u8], symbol: &str) -> bool {
    binary
        .windows(symbol.len() + 1)
        .any(|window| window.starts_with(symbol.as_bytes()) && matches!(window[symbol.len()], 0 | b'@'))
}

#[test]
fn nothing_that_loads_other_libraries_is_imported() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_muster-probe")).unwrap();
    assert!(names(&binary, "clock_gettime"), "the symbol table is not where this test looks");
    let found: Vec<&str> = FORBIDDEN.into_iter().filter(|symbol| names(&binary, symbol)).collect();
    assert!(found.is_empty(), "{found:?}");
    // A static glibc brings a dlopen of its own, which only the calls above reach.
    let dynamic = binary.windows(20).any(|window| window == b"ld-linux-x86-64.so.2");
    assert!(!(dynamic && names(&binary, "dlopen")), "dlopen is imported");
}
