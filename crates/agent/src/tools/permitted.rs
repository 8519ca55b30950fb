//! `/etc/framegauge/lease`: which settings a lease may change on this host, if its administrator wants fewer than all.
//!
//! One setting a line, as the words of a lease have them (`mtu:eth1`, `sysctl:net.ipv4.tcp_rmem`); `#` begins a comment.

use framegauge_drivers::host::settings::Setting;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file.
pub const FILE: &str = "/etc/framegauge/lease";

/// Refuses a setting that the file, if there is one, does not have.
pub fn check<'a>(file: &Path, asked: impl Iterator<Item = &'a Setting>) -> Result<(), String> {
    let shown = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(format!("cannot read {shown}, which says what a lease may change: {error}"));
        }
    };
    let found = std::fs::metadata(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    if found.uid() != 0 || found.mode() & 0o022 != 0 {
        return Err(format!("found {shown} that others than root may write, expected root's alone"));
    }
    let mut permitted = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let word = line.split('#').next().unwrap_or_default().trim();
        if !word.is_empty() {
            permitted.push(Setting::parse(word).map_err(|error| format!("{shown}:{}: {error}", number + 1))?);
        }
    }
    for setting in asked {
        if !permitted.contains(setting) {
            return Err(format!("found {setting}, expected a setting that {shown} permits on this host"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_narrows_what_a_lease_may_change() {
        let file = std::env::temp_dir().join(format!("framegauge-lease-{}", std::process::id()));
        let mtu = Setting::parse("mtu:eth1").expect("a setting");
        let other = Setting::parse("mtu:eth0").expect("a setting");
        assert!(check(&file, [&mtu, &other].into_iter()).is_ok());
        std::fs::write(&file, "# storage network\nmtu:eth1  # jumbo\n\nsysctl:net.ipv4.tcp_rmem\n")
            .expect("a file");
        let set = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("its mode");
        set(0o644);
        if std::fs::metadata(&file).expect("a file").uid() == 0 {
            assert!(check(&file, std::iter::once(&mtu)).is_ok());
            let refused = check(&file, [&mtu, &other].into_iter()).expect_err("it is not there");
            assert!(refused.starts_with("found mtu:eth0, expected a setting that "), "{refused}");
            set(0o666);
        }
        assert!(check(&file, std::iter::once(&mtu)).expect_err("a wrong owner").contains("root's alone"));
        set(0o600);
        std::fs::write(&file, "mtu:eth1\nkernel.core_pattern\n").expect("a file");
        assert!(check(&file, std::iter::once(&mtu)).is_err());
        std::fs::remove_file(file).expect("the file");
    }
}
