#!/usr/bin/env bash
# deb.sh TREE LIBDIR VERSION NOTICES OUTPUT: makes libeman1 and libeman-dev of
# what make install wrote into TREE/usr. Whoever sets SOURCE_DATE_EPOCH gets the
# same bytes each time.
set -eu
tree=$(realpath "$1") libdir=$2 version=$3 notices=$(realpath "$4")
mkdir -p "$5"
output=$(realpath "$5") here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
umask 022

mkdir -p debian "libeman1/usr/$libdir"
cp "$here/debian/control" debian/control
date=$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
printf 'libeman (%s) unstable; urgency=medium\n\n  * Version %s; upstream'"'"'s CHANGELOG.md says what is new.\n\n -- %s  %s\n' \
  "$version" "$version" "$(sed -n 's/^Maintainer: //p' debian/control)" "$date" >debian/changelog

cp -a "$tree" libeman-dev
mv "libeman-dev/usr/$libdir"/libeman.so.* "libeman1/usr/$libdir/"
chmod 644 "libeman1/usr/$libdir"/libeman.so.*
dpkg-shlibdeps -Tlibeman1.substvars -elibeman1/usr/"$libdir"/libeman.so.1

for package in libeman1 libeman-dev; do
  documents=$package/usr/share/doc/$package
  mkdir -p "$package/DEBIAN" "$documents"
  cat - "$notices" >"$documents/copyright" <<'TEXT'
Copyright: the libeman authors
License: Apache-2.0, see /usr/share/common-licenses/Apache-2.0

The library has parts of others, under these licences:

TEXT
  gzip -9nc debian/changelog >"$documents/changelog.gz"
  touch $package.substvars
  (cd $package && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
done
echo "libeman 1 libeman1 (>= $version)" >libeman1/DEBIAN/shlibs
echo 'activate-noawait ldconfig' >libeman1/DEBIAN/triggers

rm -f "$output"/*.deb
for package in libeman1 libeman-dev; do
  dpkg-gencontrol -p$package -P$package -T$package.substvars -ffiles
  dpkg-deb --root-owner-group --build $package "$output"
done
