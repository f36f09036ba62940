#!/bin/busybox sh
# The first program of a machine that boots the live image: prints what it was given, as "REPORT name value".
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
# Messages of the kernel would be between the words.
echo 1 >/proc/sys/kernel/printk
serial=/dev/ttyS0
[ -e /dev/ttyAMA0 ] && serial=/dev/ttyAMA0
exec >$serial 2>&1
report() { $b echo "REPORT $*"; }
report cmdline "$($b cat /proc/cmdline)"
firmware=bios
[ -d /sys/firmware/efi ] && firmware=uefi
$b dmesg | $b grep -q 'Secure boot enabled' && firmware=secureuefi
report firmware $firmware
$b find / -xdev -type f ! -path '/proc/*' ! -path '/sys/*' ! -path '/bin/*' ! -path '/modules/*' | $b sort >/paths
while read -r path; do
    report file "$path" "$($b sha256sum <"$path" | $b cut -d ' ' -f 1)"
done </paths
url=$($b sed -n 's/.*coreos.live.rootfs_url="\{0,1\}\([^" ]*\).*/\1/p' /proc/cmdline)
if [ -n "$url" ]; then
    for number in 0 1 2 3 4 5 6 7; do $b insmod /modules/$number.ko; done
    $b ifconfig eth0 10.0.2.15 up
    report rootfs "$($b wget -q -O - "$url" | $b sha256sum | $b cut -d ' ' -f 1)"
fi
report end
$b poweroff -f
