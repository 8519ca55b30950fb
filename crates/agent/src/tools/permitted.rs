//! `/etc/framegauge/lease`: which settings a lease may change on this host, if its administrator wants fewer than all.
//!
//! One setting a line, as the words of a lease have them (`mtu:eth1`, `sysctl:net.ipv4.tcp_rmem`); `#` begins a comment. An
//! MTU below 1280 bytes takes IPv6 from an interface for as long as it lasts (RFC 8200), and takes the word `below-1280`
//! behind its setting: `mtu:eth1 below-1280`. Every line has its end, the last one too: without that, a file that was cut
//! off could permit another interface (`mtu:eth1` of `mtu:eth12`).

use framegauge_drivers::host::settings::Setting;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file.
pub const FILE: &str = "/etc/framegauge/lease";
const WORD: &str = "below-1280";

/// What the file says.
#[derive(Debug)]
pub struct Permitted {
    file: String,
    /// Each setting, and whether it may be an MTU below 1280. Without the file, all that a lease may change at all.
    lines: Option<Vec<(Setting, bool)>>,
}

impl Permitted {
    /// Reads the file, if there is one.
    pub fn read(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { file: shown.to_string(), lines: None });
            }
            Err(error) => {
                return Err(format!("cannot read {shown}, which says what a lease may change: {error}"));
            }
        };
        let metadata = std::fs::metadata(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
        if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
            return Err(format!("found {shown} that others than root may write, expected root's alone"));
        }
        let lines = parse(&text).map_err(|(line, error)| format!("{shown}:{line}: {error}"))?;
        Ok(Self { file: shown.to_string(), lines: Some(lines) })
    }

    /// Refuses a change that the file, or without it this program, does not permit.
    pub fn demand<'a>(&self, settings: impl Iterator<Item = &'a (Setting, String)>) -> Result<(), String> {
        for (setting, value) in settings {
            setting.allows(value)?;
            let lines = self.lines.as_deref();
            let line = lines.and_then(|lines| lines.iter().find(|(permitted, _)| permitted == setting));
            if lines.is_some() && line.is_none() {
                let file = &self.file;
                return Err(format!("found {setting}, expected a setting that {file} permits on this host"));
            }
            if setting.takes_ipv6(value) && !line.is_some_and(|(_, small)| *small) {
                return Err(format!(
                    "found the MTU {value:?}, expected 1280 to 65535 bytes, or the line {setting} {WORD} in {}",
                    self.file
                ));
            }
        }
        Ok(())
    }
}

/// The settings of a file's text, each with whether it has the word for a small MTU; else the number of a line, and what is
/// wrong with it.
pub fn parse(text: &str) -> Result<Vec<(Setting, bool)>, (usize, String)> {
    let mut lines = Vec::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let failure = |error| (number + 1, error);
        if !line.ends_with('\n') {
            return Err(failure(
                "found no end of the last line, expected one: the file may be cut off".into(),
            ));
        }
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let setting = Setting::parse(name).map_err(failure)?;
        let word = words.next();
        if word.is_some_and(|word| word != WORD || !matches!(setting, Setting::Mtu(_)))
            || words.next().is_some()
        {
            return Err(failure(format!("found {:?}, expected SETTING, or mtu:IFACE {WORD}", line.trim())));
        }
        lines.push((setting, word.is_some()));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn wanted(name: &str, value: &str) -> (Setting, String) {
        (Setting::parse(name).expect("a setting"), value.into())
    }

    fn check(file: &Path, settings: &[(Setting, String)]) -> Result<(), String> {
        Permitted::read(file)?.demand(settings.iter())
    }

    #[test]
    fn a_file_narrows_what_a_lease_may_change() {
        let file = std::env::temp_dir().join(format!("framegauge-lease-{}", std::process::id()));
        let mtu = wanted("mtu:eth1", "9000");
        let other = wanted("mtu:eth0", "9000");
        let small = wanted("mtu:eth1", "1279");
        assert!(check(&file, &[mtu.clone(), other.clone()]).is_ok());
        assert!(check(&file, std::slice::from_ref(&small)).is_err());
        let write = |text: &str, mode| {
            std::fs::write(&file, text).expect("a file");
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("its mode");
        };
        write("# storage network\nmtu:eth1  # jumbo\n\nsysctl:net.ipv4.tcp_rmem\n", 0o644);
        if std::fs::metadata(&file).expect("a file").uid() == 0 {
            assert!(check(&file, std::slice::from_ref(&mtu)).is_ok());
            let refused = check(&file, &[mtu.clone(), other]).expect_err("it is not there");
            assert!(refused.starts_with("found mtu:eth0, expected a setting that "), "{refused}");
            let refused = check(&file, std::slice::from_ref(&small)).expect_err("there is no word for it");
            assert!(refused.starts_with("found the MTU \"1279\", expected 1280 to 65535 bytes"), "{refused}");
            write("mtu:eth1 below-1280\n", 0o644);
            assert!(check(&file, &[small]).is_ok());
            assert!(check(&file, &[wanted("mtu:eth1", "67")]).is_err());
            write("tso:eth1 below-1280\n", 0o644);
            assert!(check(&file, std::slice::from_ref(&mtu)).is_err());
        }
        if std::fs::metadata(&file).expect("a file").uid() == 0 {
            write("mtu:eth1", 0o644); // of mtu:eth12, perhaps
            let refused = check(&file, std::slice::from_ref(&mtu)).expect_err("it may be cut off");
            assert!(
                refused.ends_with(":1: found no end of the last line, expected one: the file may be cut off")
            );
        }
        write("mtu:eth1\n", 0o666);
        assert!(
            check(&file, std::slice::from_ref(&mtu)).expect_err("a wrong owner").contains("root's alone")
        );
        write("mtu:eth1\nkernel.core_pattern\n", 0o600);
        assert!(check(&file, &[mtu]).is_err());
        std::fs::remove_file(file).expect("the file");
    }
}
