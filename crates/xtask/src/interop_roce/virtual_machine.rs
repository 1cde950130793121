//! A virtual machine with Debian's kernel and one program, which is one end of RDMA connections. Its network card is a
//! socket of this process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use wire::ethernet::Address;

use super::initramfs::Archive;

/// Ethernet addresses of this process and of the machine.
pub const OWN_MAC: Address = Address([2, 0, 0, 0, 0, 1]);
pub const MACHINE_MAC: Address = Address([2, 0, 0, 0, 0, 2]);
/// IP addresses of this process and of the machine, of both families.
pub const OWN_IP: [&str; 2] = ["10.77.0.1", "fd77::1"];
pub const MACHINE_IP: [&str; 2] = ["10.77.0.2", "fd77::2"];

/// Modules that the machine loads, with all that these depend on. The integrity check needs `crc32`.
const MODULES: &[&str] = &["virtio_pci", "virtio_net", "crc32_generic", "ib_uverbs", "rdma_rxe"];

/// The kernel package of Debian, which depends on the newest one.
const KERNEL_PACKAGE: &str = "linux-image-amd64";

/// The file that names the part of libibverbs for soft RoCE.
const RXE_DRIVER: &str = "/etc/libibverbs.d/rxe.driver";

/// Maximum size of a frame.
const MAX_FRAME: usize = 2048;

/// Kernel and initial file system of the machine, and a directory for its sockets.
pub struct Files {
    kernel: PathBuf,
    initramfs: PathBuf,
    /// Directory for sockets and the console's log.
    home: PathBuf,
}

/// Returns the first Debian package that is needed and not installed.
pub fn missing_package() -> Option<&'static str> {
    let needed: [(&[&str], &'static str); 6] = [
        (&["/usr/bin/qemu-system-x86_64"], "qemu-system-x86"),
        (&["/usr/bin/cc"], "gcc"),
        (&["/usr/include/infiniband/verbs.h"], "libibverbs-dev"),
        (&[RXE_DRIVER], "ibverbs-providers"),
        (&["/usr/bin/busybox", "/bin/busybox"], "busybox-static"),
        (&["/usr/bin/rdma", "/sbin/rdma", "/usr/sbin/rdma"], "iproute2"),
    ];
    let is_missing = |paths: &[&str]| !paths.iter().any(|path| Path::new(path).exists());
    needed.into_iter().find(|(paths, _)| is_missing(paths)).map(|(_, package)| package)
}

impl Files {
    /// Compiles the machine's program and collects its file system.
    pub fn prepare(kernel: Option<&Path>) -> Result<Files> {
        let home = crate::target().join("interop-roce");
        fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
        let peer = home.join("peer");
        let source = crate::root().join("crates/xtask/interop_roce/peer.c");
        output(Command::new("cc").args(["-O2", "-o"]).arg(&peer).arg(source).arg("-libverbs"))?;
        let root = match kernel {
            Some(root) => root.to_owned(),
            None => download_kernel(&home.join("kernel"))?,
        };
        let kernel = Kernel::find(&root)?;
        let mut archive = Archive::default();
        ["proc", "sys", "dev"].iter().for_each(|name| archive.add_directory(name));
        let busybox = fs::read("/bin/busybox").or_else(|_| fs::read("/usr/bin/busybox"));
        archive.add("/bin/busybox", &busybox.context("busybox")?);
        archive.add("/peer", &fs::read(&peer)?);
        add_libraries(&mut archive, &peer)?;
        for tool in ["ip", "rdma"] {
            let path = find_tool(tool).with_context(|| format!("iproute2 has no `{tool}`"))?;
            archive.add(&format!("/bin/{tool}"), &fs::read(&path)?);
            add_libraries(&mut archive, &path)?;
        }
        add_provider(&mut archive)?;
        let mut order = String::new();
        for (name, module) in kernel.modules()? {
            archive.add(&format!("/modules/{name}.ko"), &module);
            order += &format!("{name}\n");
        }
        archive.add("/modules/order", order.as_bytes());
        archive.add("/init", init_script().as_bytes());
        let initramfs = home.join("initramfs");
        fs::write(&initramfs, archive.finish()).with_context(|| initramfs.display().to_string())?;
        Ok(Files { kernel: kernel.image, initramfs, home })
    }
}

/// Returns the standard output of a command that succeeds.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{name}`"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{name}` failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Downloads and unpacks the newest kernel package, unless that has been done. Installs nothing.
fn download_kernel(home: &Path) -> Result<PathBuf> {
    let root = home.join("root");
    if Kernel::find(&root).is_ok() {
        return Ok(root);
    }
    let unpacking = home.join("unpacking");
    _ = fs::remove_dir_all(&unpacking);
    fs::create_dir_all(&unpacking).with_context(|| unpacking.display().to_string())?;
    let depends = output(Command::new("apt-cache").args(["depends", "--important", KERNEL_PACKAGE]))?;
    let name = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")).find(|name| !name.is_empty());
    let name = name.with_context(|| format!("there is no package {KERNEL_PACKAGE}"))?;
    println!("Downloading {name}.");
    output(Command::new("apt-get").args(["download", "-q", name]).current_dir(home))?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let package = files(home)?.into_iter().find(is_package).context("apt-get downloaded no package")?;
    output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacking))?;
    fs::remove_file(&package).with_context(|| package.display().to_string())?;
    // An interrupted run leaves no half of a kernel.
    fs::rename(&unpacking, &root).with_context(|| root.display().to_string())?;
    Ok(root)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Returns the path of a program, which may be in a directory that only root searches.
fn find_tool(name: &str) -> Option<PathBuf> {
    let directories = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    directories.iter().map(|directory| Path::new(directory).join(name)).find(|path| path.exists())
}

/// Adds the libraries that a program or library loads.
fn add_libraries(archive: &mut Archive, program: &Path) -> Result<()> {
    let text = output(Command::new("ldd").arg(program))?;
    let mut paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    paths.try_for_each(|path| archive.add_from(Path::new(path)))
}

/// Adds the part of libibverbs for soft RoCE, and the file that names it.
fn add_provider(archive: &mut Archive) -> Result<()> {
    archive.add_from(Path::new(RXE_DRIVER))?;
    let directory = Path::new("/usr/lib/x86_64-linux-gnu/libibverbs");
    let is_provider = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains("librxe"));
    let provider = files(directory)?.into_iter().find(is_provider).context("ibverbs-providers has no librxe")?;
    archive.add_from(&provider)?;
    add_libraries(archive, &provider)
}

fn init_script() -> String {
    let [(own_v4, own_v6), (v4, v6)] = [(OWN_IP[0], OWN_IP[1]), (MACHINE_IP[0], MACHINE_IP[1])];
    format!(
        "#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
while read name; do /bin/busybox insmod /modules/$name.ko; done < /modules/order
/bin/ip link set lo up
/bin/ip link set eth0 mtu 1500 up
/bin/ip address add {v4}/24 dev eth0
/bin/ip address add {v6}/64 dev eth0 nodad
/bin/ip neighbour add {own_v4} lladdr {OWN_MAC} dev eth0
/bin/ip neighbour add {own_v6} lladdr {OWN_MAC} dev eth0
/bin/rdma link add rxe0 type rxe netdev eth0
/bin/busybox stty -F /dev/ttyS1 raw -echo
/peer < /dev/ttyS1 > /dev/ttyS1
/bin/busybox poweroff -f
"
    )
}

/// An unpacked kernel package.
struct Kernel {
    image: PathBuf,
    /// The files of modules, by the names of modules.
    modules: BTreeMap<String, PathBuf>,
    /// Modules that the image contains.
    built_in: Vec<String>,
}

impl Kernel {
    /// Finds the last version below `root` that has soft RoCE.
    fn find(root: &Path) -> Result<Kernel> {
        let mut images = files(&root.join("boot")).unwrap_or_default();
        images.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")));
        for image in images.into_iter().rev() {
            let version = image.file_name().unwrap_or_default().to_string_lossy().replacen("vmlinuz-", "", 1);
            let roots = ["lib/modules", "usr/lib/modules"].map(|path| root.join(path).join(&version));
            let Some(directory) = roots.into_iter().find(|path| path.is_dir()) else { continue };
            let mut modules = BTreeMap::new();
            collect_modules(&directory.join("kernel"), &mut modules)?;
            if modules.contains_key("rdma_rxe") {
                let list = fs::read_to_string(directory.join("modules.builtin")).unwrap_or_default();
                let built_in = list.lines().map(|line| module_name(Path::new(line))).collect();
                return Ok(Kernel { image, modules, built_in });
            }
        }
        bail!("there is no kernel with the module rdma_rxe in {}", root.display())
    }

    /// Returns names and contents of the modules to load, in order.
    fn modules(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut ordered = Vec::new();
        MODULES.iter().try_for_each(|name| self.add_module(name, &mut ordered))?;
        Ok(ordered)
    }

    fn add_module(&self, name: &str, ordered: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
        let is_there = |ordered: &[(String, Vec<u8>)]| ordered.iter().any(|(other, _)| other == name);
        if is_there(ordered) || self.built_in.iter().any(|other| other == name) {
            return Ok(());
        }
        let path = self.modules.get(name).with_context(|| format!("the kernel has no module {name}"))?;
        let bytes = match path.extension().and_then(|extension| extension.to_str()) {
            Some("ko") => fs::read(path).with_context(|| path.display().to_string())?,
            _ => {
                let unpacked = Command::new("xz").args(["--decompress", "--stdout"]).arg(path).output();
                let unpacked = unpacked.context("install xz-utils")?;
                ensure!(unpacked.status.success(), "xz cannot unpack {}", path.display());
                unpacked.stdout
            }
        };
        for needed in dependencies(&bytes) {
            self.add_module(&needed, ordered)?;
        }
        ordered.push((name.to_owned(), bytes));
        Ok(())
    }
}

fn collect_modules(directory: &Path, modules: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for path in files(directory)? {
        if path.is_dir() {
            collect_modules(&path, modules)?;
        } else if path.to_string_lossy().ends_with(".ko") || path.to_string_lossy().ends_with(".ko.xz") {
            modules.insert(module_name(&path), path);
        }
    }
    Ok(())
}

/// Returns the name of a module: that of its file, with `_` for `-`.
fn module_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().replace('-', "_")
}

/// Returns the modules that a module depends on, as its section `.modinfo` has them.
fn dependencies(module: &[u8]) -> Vec<String> {
    const FIELD: &[u8] = b"\0depends=";
    let Some(at) = module.windows(FIELD.len()).position(|bytes| bytes == FIELD) else { return Vec::new() };
    let value = module[at + FIELD.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(value);
    names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

/// A running machine.
pub struct VirtualMachine {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
    card: UnixDatagram,
    frame: Vec<u8>,
    sockets: [PathBuf; 2],
    console: PathBuf,
}

impl VirtualMachine {
    pub fn boot(files: &Files) -> Result<VirtualMachine> {
        let own = std::process::id();
        let sockets = ["ours", "machine"].map(|end| files.home.join(format!("{own}.{end}")));
        let console = files.home.join("console.log");
        let card = UnixDatagram::bind(&sockets[0]).with_context(|| sockets[0].display().to_string())?;
        card.set_read_timeout(Some(Duration::from_millis(1)))?;
        // A machine that hangs must not hang this process.
        card.set_write_timeout(Some(Duration::from_secs(1)))?;
        let (ours, theirs) = (sockets[0].display(), sockets[1].display());
        let network = format!("dgram,id=n,local.type=unix,local.path={theirs},remote.type=unix,remote.path={ours}");
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-m", "512"]);
        // Emulated: KVM needs privileges, and nested virtualization may hang. The machine boots in 3 s nevertheless.
        command.args(["-accel", "tcg,thread=multi", "-cpu", "max"]);
        command.arg("-kernel").arg(&files.kernel).arg("-initrd").arg(&files.initramfs);
        command.args(["-append", "console=ttyS0 panic=-1", "-serial"]);
        command.arg(format!("file:{}", console.display())).args(["-serial", "stdio", "-netdev", &network]);
        command.arg("-device").arg(format!("virtio-net-pci,netdev=n,mac={MACHINE_MAC},romfile="));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("QEMU")?;
        let commands = child.stdin.take().context("QEMU has no input")?;
        let lines = BufReader::new(child.stdout.take().context("QEMU has no output")?).lines();
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Ok(VirtualMachine { child, commands, answers, card, frame: vec![0; MAX_FRAME], sockets, console })
    }

    /// Sends a command to the program.
    pub fn command(&mut self, line: &str) -> Result<()> {
        writeln!(self.commands, "{line}").context("the virtual machine has ended")
    }

    /// Returns the next line of the program, if there is one.
    pub fn answer(&mut self) -> Result<Option<String>> {
        match self.answers.try_recv() {
            Ok(line) => Ok(Some(line.trim().to_owned())),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => bail!("the virtual machine ended; see {}", self.console.display()),
        }
    }

    /// Returns a frame of the machine, or none within one millisecond.
    pub fn receive(&mut self) -> Result<Option<&[u8]>> {
        match self.card.recv(&mut self.frame) {
            Ok(length) => Ok(Some(&self.frame[..length])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
            Err(error) => Err(error).context("the machine's network card"),
        }
    }

    /// Sends a frame to the machine. Before its card exists, frames are lost.
    pub fn send(&mut self, frame: &[u8]) {
        _ = self.card.send_to(frame, &self.sockets[1]);
    }
}

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        self.sockets.iter().for_each(|path| _ = fs::remove_file(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_name_what_they_depend_on() {
        let names = dependencies(b"ELF\0license=GPL\0depends=ib-core,udp_tunnel\0name=x\0");
        assert_eq!(names, ["ib_core", "udp_tunnel"]);
        assert_eq!(dependencies(b"\0depends=\0"), [""; 0]);
        assert_eq!(dependencies(b"no section"), [""; 0]);
        assert_eq!(module_name(Path::new("/x/ib-uverbs.ko.xz")), "ib_uverbs");
    }
}
