# What the shared library is on each operating system, and how make
# PLATFORM=os-arch builds it for another than this machine, in build/PLATFORM.
#
# zig's C compiler (PyPI: ziglang) knows every glibc and macOS; Windows has
# mingw-w64.

ALL_PLATFORMS := linux-amd64 linux-arm64 windows-amd64 darwin-amd64 darwin-arm64

# The oldest systems that these run on.
GLIBC := 2.17
MACOS := 12.0

ifneq ($(PLATFORM),)
  ifeq ($(filter $(PLATFORM),$(ALL_PLATFORMS)),)
    $(error PLATFORM is $(PLATFORM), not one of $(ALL_PLATFORMS))
  endif
  OS     := $(word 1,$(subst -, ,$(PLATFORM)))
  GOARCH := $(word 2,$(subst -, ,$(PLATFORM)))
  TARGET := $(BUILD)/$(PLATFORM)
  ZIG    := $(abspath $(VENV))/bin/python-zig cc -target $(subst amd64,x86_64,$(subst arm64,aarch64,$(GOARCH)))
  CROSS_linux   := $(ZIG)-linux-gnu.$(GLIBC)
  CROSS_darwin  := $(ZIG)-macos.$(MACOS)
  CROSS_windows := $(CURDIR)/capi/package/mingw.sh
  GO_ENVIRONMENT := GOOS=$(OS) GOARCH=$(GOARCH) CC='$(CROSS_$(OS))'
  INPUTS := $(VENV)/packaging
else
  OS     := $(shell go env GOOS)
  TARGET := $(BUILD)$(if $(ISA),/emantest)
endif

NAMES  := $(shell sed -n 's/^ *\(eman_[a-z0-9_]*\);.*/\1/p' capi/exports.map)
FOLDER := $(CURDIR)/$(TARGET)

# Every public name is listed; nothing else leaves the library.
ifeq ($(OS),windows)
  LIBRARY := $(TARGET)/eman.dll
  LINK    := $(FOLDER)/eman.def -static-libgcc
  INPUTS  += $(TARGET)/eman.def
else ifeq ($(OS),darwin)
  LIBRARY := $(TARGET)/libeman.dylib
  SONAME  := libeman.$(ABI).dylib
  LINK    := -Wl,-install_name,@rpath/$(SONAME) -Wl,-exported_symbols_list,$(FOLDER)/exports.txt
  INPUTS  += $(TARGET)/exports.txt
  ifneq ($(PLATFORM),)
    # Go names two libraries of the system, of which it uses nothing here.
    STUBS  := libresolv.tbd CoreFoundation.framework/CoreFoundation.tbd
    LINK   += -L$(FOLDER)/stubs -F$(FOLDER)/stubs -Wl,-dead_strip_dylibs
    INPUTS += $(STUBS:%=$(TARGET)/stubs/%)
  endif
else
  LIBRARY := $(TARGET)/libeman.so
  SONAME  := libeman.so.$(ABI)
  # nodelete, as a Go runtime cannot be unloaded.
  LINK    := -Wl,-soname,$(SONAME) -Wl,--version-script=$(CURDIR)/capi/exports.map \
             -Wl,-z,now -Wl,-z,relro -Wl,-z,defs -Wl,-z,nodelete -Wl,--build-id=sha1 -Wl,--strip-all
  ifneq ($(PLATFORM),)
    CHECK = newest=$$(objdump -T $@ | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1); \
      echo "$(PLATFORM): the newest glibc that a symbol needs is $$newest"; \
      printf '%s\n' "$$newest" GLIBC_$(GLIBC) | sort -VC
  endif
endif

$(VENV)/packaging: tests/packaging.txt $(VENV)/stamp
	@$(PY) -m pip install -q --disable-pip-version-check -r $<
	@touch $@

$(TARGET)/eman.def: capi/exports.map
	@mkdir -p $(@D)
	@printf '%s\n' 'LIBRARY eman.dll' EXPORTS $(NAMES) >$@

$(TARGET)/libeman.dll.a: $(TARGET)/eman.def
	x86_64-w64-mingw32-dlltool -d $< -l $@

$(TARGET)/exports.txt: capi/exports.map
	@mkdir -p $(@D)
	@printf '_%s\n' $(NAMES) >$@

$(TARGET)/stubs/%.tbd:
	@mkdir -p $(@D)
	@printf '%s\n' '--- !tapi-tbd' 'tbd-version: 4' 'targets: [x86_64-macos, arm64-macos]' \
	  'install-name: $(*F)' ... >$@
