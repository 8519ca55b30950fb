//! Files that are packed, told by their first bytes: gzip and zstd are unpacked here, others by the programs that everybody
//! has for them.

use crate::ahead::Ahead;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

/// Bytes that another thread may read.
pub(crate) type Source = Box<dyn Read + Send>;

const BUFFER_BYTES: usize = 1 << 18;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The longest beginning of all.
const BEGIN_BYTES: u64 = 6;

/// What unpacks a format.
#[derive(Debug)]
struct Program {
    /// What its files begin with.
    begin: &'static [u8],
    name: &'static str,
    package: &'static str,
}

/// The third is LZMA without a header of its own: properties, and the lower half of a dictionary's size.
const PROGRAMS: [Program; 4] = [
    Program { begin: &[0xfd, b'7', b'z', b'X', b'Z', 0], name: "xz", package: "xz-utils" },
    Program { begin: &[0x04, 0x22, 0x4d, 0x18], name: "lz4", package: "lz4" },
    Program { begin: &[0x5d, 0, 0], name: "xz", package: "xz-utils" },
    Program { begin: b"BZh", name: "bzip2", package: "bzip2" },
];

fn program(first: &[u8]) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| first.starts_with(program.begin))
}

/// Whether a program is started to read a file that begins with these bytes.
pub fn needs_program(first: &[u8]) -> bool {
    program(first).is_some()
}

/// Whether what a source begins with is that of a file that is unpacked.
pub(super) fn is_packed(source: &mut impl Read) -> io::Result<bool> {
    let first = beginning(source)?;
    Ok(first.starts_with(GZIP) || first.starts_with(ZSTD) || program(&first).is_some())
}

fn beginning(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(BEGIN_BYTES as usize);
    source.take(BEGIN_BYTES).read_to_end(&mut first)?;
    Ok(first)
}

/// The bytes of a file that may be packed.
pub(crate) fn unpacked(mut source: Source) -> io::Result<Source> {
    let first = beginning(&mut source)?;
    let (is_gzip, is_zstd, program) = (first.starts_with(GZIP), first.starts_with(ZSTD), program(&first));
    let whole = io::Cursor::new(first).chain(source);
    if let Some(program) = program {
        return Ok(Box::new(Piped::through(program, Box::new(whole))?));
    }
    if is_gzip {
        let decoder = MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, whole));
        return Ok(Box::new(Ahead::new(Box::new(decoder))));
    }
    if is_zstd {
        let buffered = BufReader::with_capacity(BUFFER_BYTES, whole);
        let decoder = StreamingDecoder::new(buffered).map_err(|error| io::Error::other(error.to_string()))?;
        return Ok(Box::new(Ahead::new(Box::new(decoder))));
    }
    // The reader of captures has a buffer of its own.
    Ok(Box::new(whole))
}

/// What a program makes of a source, which a thread feeds to it. It is ended with this value.
#[derive(Debug)]
struct Piped {
    child: Child,
    output: ChildStdout,
    name: &'static str,
}

impl Piped {
    fn through(program: &Program, mut source: Source) -> io::Result<Piped> {
        let &Program { name, package, .. } = program;
        let mut command = Command::new(name);
        command.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other(format!(
                "found a file packed by {name}, and no program {name} to unpack it: apt-get install {package}"
            )),
            _ => io::Error::other(format!("{name}: {error}")),
        })?;
        let (mut input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        // Its end, or that of the program, ends it; what the program lacks then, it says by its exit code.
        thread::spawn(move || io::copy(&mut source, &mut input));
        Ok(Piped { child, output, name })
    }
}

impl Read for Piped {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.output.read(to)?;
        if read > 0 || to.is_empty() || self.child.wait()?.success() {
            return Ok(read);
        }
        Err(io::Error::other(format!("{} could not unpack the rest", self.name)))
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program that everybody has makes of these bytes.
    fn packed(argv: &[&str], bytes: &'static [u8]) -> Vec<u8> {
        let mut command = Command::new(argv[0]);
        let mut child =
            command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect(argv[0]);
        let mut input = child.stdin.take().expect("piped");
        let feeding = thread::spawn(move || io::copy(&mut io::Cursor::new(bytes), &mut input));
        let mut output = Vec::new();
        child.stdout.take().expect("piped").read_to_end(&mut output).expect("it packs");
        feeding.join().expect("no panic").expect("it takes all");
        assert!(child.wait().expect("it ends").success());
        output
    }

    fn read(bytes: Vec<u8>) -> (Vec<u8>, Option<String>) {
        let mut content = Vec::new();
        let error = match unpacked(Box::new(io::Cursor::new(bytes))) {
            Ok(mut source) => source.read_to_end(&mut content).err(),
            Err(error) => Some(error),
        };
        (content, error.map(|error| error.to_string()))
    }

    const CONTENT: &[u8] = &[7; 1 << 20];

    #[test]
    fn what_xz_packs_comes_out_again_and_a_cut_is_told() {
        for argv in [&["xz", "-0"][..], &["xz", "-0", "--format=lzma"]] {
            let whole = packed(argv, CONTENT);
            assert!(needs_program(&whole));
            assert_eq!(read(whole.clone()), (CONTENT.to_vec(), None), "{argv:?}");
            let (content, error) = read(whole[..whole.len() - 9].to_vec());
            assert!(CONTENT.starts_with(&content));
            assert_eq!(error.as_deref(), Some("xz could not unpack the rest"));
        }
    }

    #[test]
    fn nobody_waits_for_a_program_whose_output_is_not_wanted() {
        let whole = packed(&["xz", "-0"], CONTENT);
        let mut source = unpacked(Box::new(io::Cursor::new(whole))).expect("xz is there");
        source.read_exact(&mut [0; 3]).expect("there is more");
        drop(source);
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_its_package() {
        let missing = Program { begin: b"", name: "framegauge-no-such-program", package: "some-package" };
        let error = Piped::through(&missing, Box::new(io::empty())).expect_err("it is not there").to_string();
        assert_eq!(
            error,
            "found a file packed by framegauge-no-such-program, and no program framegauge-no-such-program to unpack \
             it: apt-get install some-package"
        );
    }

    #[test]
    fn what_is_not_packed_stays_as_it_is() {
        for bytes in [&b""[..], b"\xd4\xc3\xb2\xa1", b"BZ"] {
            assert_eq!(read(bytes.to_vec()), (bytes.to_vec(), None));
        }
    }
}
