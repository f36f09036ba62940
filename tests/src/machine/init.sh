#!/bin/busybox sh
# The first program of a machine that boots the live image: prints what it was given, as "REPORT name value". With a
# discovery agent in the image, it then is the live system, as far as the agent needs one.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
# Messages of the kernel would be between the words.
echo 1 >/proc/sys/kernel/printk
serial=/dev/ttyS0
for console in /dev/ttyAMA0 /dev/hvc0; do [ -e $console ] && serial=$console; done
exec >$serial 2>&1
report() { $b echo "REPORT $*"; }
report cmdline "$($b cat /proc/cmdline)"
firmware=bios
[ -d /sys/firmware/efi ] && firmware=uefi
$b dmesg | $b grep -q 'Secure boot enabled' && firmware=secureuefi
report firmware $firmware
$b find / -xdev -type f ! -path '/proc/*' ! -path '/sys/*' ! -path '/bin/*' ! -path '/modules/*' ! -path '/usr/*' ! -path '/lib*' | $b sort >/paths
while read -r path; do
    report file "$path" "$($b sha256sum <"$path" | $b cut -d ' ' -f 1)"
done </paths
network() {
    for number in 0 1 2 3 4 5 6 7 8; do $b insmod /modules/$number.ko; done
    $b ifconfig lo 127.0.0.1 up
    address=$($b sed -n 's/.*live.address=\([^ ]*\).*/\1/p' /proc/cmdline)
    $b ifconfig eth0 ${address:-10.0.2.15} netmask 255.255.255.0 up
}
url=$($b sed -n 's/.*coreos.live.rootfs_url="\{0,1\}\([^" ]*\).*/\1/p' /proc/cmdline)
if [ -n "$url" ]; then
    network
    report rootfs "$($b wget -q -O - "$url" | $b sha256sum | $b cut -d ' ' -f 1)"
fi
report end
handover=/etc/systemd/system/initrd.target.wants/atoll-agent-handover.service
[ -L $handover ] || $b poweroff -f

[ -n "$url" ] || network
$b route add default gw 10.0.2.2
echo 'nameserver 10.0.2.3' >/etc/resolv.conf
export PATH=/usr/local/bin:/usr/bin
for applet in $($b --list); do [ -e /usr/bin/$applet ] || $b ln -s $b /usr/bin/$applet; done
$b mount -t tmpfs run /run
# coreos-installer looks for the socket of udev.
$b mkdir -p /run/udev
: >/run/udev/control
# The commands of a unit, as far as these two have any.
commands() { sed -n "s/^$1=//p"; }
commands ExecStart <$handover | while read -r command; do $command; done
sed 's/\\n/\n/g' /config.ign | grep '^ExecStart.*/usr/local/bin/atoll-agent' >/unit
commands ExecStartPre </unit | while read -r command; do $command; done
while true; do
    $(commands ExecStart </unit) 2>/dev/ttyS1
    sleep 3
done
