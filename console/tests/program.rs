//! The program itself. That cargo builds it for this test is what tests on nodes start, too.

use std::process::Command;

#[test]
fn the_program_says_its_version_and_refuses_what_it_does_not_know() -> std::io::Result<()> {
    let program = env!("CARGO_BIN_EXE_muster");
    let said = Command::new(program).arg("--version").output()?;
    assert!(said.status.success());
    assert!(String::from_utf8_lossy(&said.stdout).starts_with(concat!("muster ", env!("CARGO_PKG_VERSION"))));
    assert_eq!(Command::new(program).arg("nosuch").output()?.status.code(), Some(64));
    Ok(())
}
