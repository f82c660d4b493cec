# make deb, make dist: packages. The same sources give the same bytes: names are
# sorted, owners are nobody's, and every time is that of the last commit.

PLATFORMS ?= $(ALL_PLATFORMS)
DIST      := $(BUILD)/dist
DEBS      := $(BUILD)/deb
PACKAGE   := $(TARGET)/package
STEM      := eman-$(VERSION)-$(PLATFORM)
DOCUMENTS := share/doc/libeman

dist archive deb: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: dist archive deb
dist: $(VENV)/packaging ## Archives, wheels and add-ons for PLATFORMS with checksums, build/dist
	@rm -rf $(DIST)
	@for platform in $(PLATFORMS); do $(MAKE) --no-print-directory archive PLATFORM=$$platform; done
	@cd $(DIST) && sha256sum * >SHA256SUMS && cat SHA256SUMS

# Of one platform: the installed tree with a bill of materials and licences; a wheel; the add-on.
archive: library $(VENV)/packaging
	@rm -rf $(PACKAGE) && mkdir -p $(DIST)
	@umask 022; $(MAKE) --no-print-directory install PREFIX=/$(STEM) DESTDIR=$(PACKAGE)
	@install -D -m 644 LICENSE $(PACKAGE)/$(STEM)/$(DOCUMENTS)/LICENSE
	@$(PY) capi/package/sbom.py $(LIBRARY) --version $(VERSION) --sbom $(DIST)/$(STEM).cdx.json --notices $(PACKAGE)/$(STEM)/$(DOCUMENTS)/NOTICES
	@tar --sort=name --format=ustar --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	  -C $(PACKAGE) -c $(STEM) | gzip -9n >$(DIST)/$(STEM).tar.gz
	@EMAN_WHEEL_LIBRARY=$(CURDIR)/$(LIBRARY) $(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w $(PACKAGE)/wheel bindings/python
	@cp $(PACKAGE)/wheel/*.whl $(DIST)
	@$(PY) bindings/blender/build.py --package bindings/python/eman --library $(LIBRARY) --wheel $(PACKAGE)/wheel/*.whl \
	  --platform $(subst darwin,macos,$(OS))-$(subst amd64,x64,$(GOARCH)) --output $(DIST) >/dev/null

deb: MULTIARCH = lib/$(shell dpkg-architecture -qDEB_HOST_MULTIARCH)
deb: library $(VENV)/packaging ## Debian packages libeman1 and libeman-dev, build/deb
	@rm -rf $(PACKAGE)
	@umask 022; $(MAKE) --no-print-directory install PREFIX=/usr LIBDIR=$(MULTIARCH) DESTDIR=$(PACKAGE)/tree
	@$(PY) capi/package/sbom.py $(LIBRARY) --version $(VERSION) --sbom $(PACKAGE)/sbom.json --notices $(PACKAGE)/notices
	@capi/package/deb.sh $(PACKAGE)/tree $(MULTIARCH) $(VERSION) $(PACKAGE)/notices $(DEBS)
