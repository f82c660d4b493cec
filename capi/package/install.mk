# make install: the library under its system's names, headers, and what CMake
# and pkg-config read. Nothing installed knows PREFIX: the tree may be moved.

LIBDIR  ?= lib
INTO    := $(DESTDIR)$(PREFIX)

# What a program opens at run time, below PREFIX, and what CMake needs beside it.
ifeq ($(OS),windows)
  RUNTIME  := bin/eman.dll
  LINKABLE := $(TARGET)/libeman.dll.a
  PROPERTY := IMPORTED_IMPLIB "$${_eman_root}/$(LIBDIR)/libeman.dll.a"
else
  RUNTIME  := $(LIBDIR)/$(SONAME)
  PROPERTY := IMPORTED_SONAME "$(if $(filter darwin,$(OS)),@rpath/)$(SONAME)"
endif

# From the folder of libraries to PREFIX.
ROOT := $(shell echo $(LIBDIR) | sed 's|[^/]\{1,\}|..|g')
FILL := sed -e 's|@VERSION@|$(VERSION)|g; s|@MAJOR@|$(word 1,$(subst ., ,$(VERSION)))|g; s|@MINOR@|$(word 2,$(subst ., ,$(VERSION)))|g' \
            -e 's|@ROOT@|$(ROOT)|g; s|@LIBDIR@|$(LIBDIR)|g; s|@LIBRARY@|$(RUNTIME)|g; s|@PROPERTY@|$(PROPERTY)|g'

.PHONY: install
install: library $(LINKABLE) ## Library, headers, CMake and pkg-config files into PREFIX
	install -d '$(INTO)/include' '$(INTO)/$(dir $(RUNTIME))' '$(INTO)/$(LIBDIR)/cmake/eman' '$(INTO)/$(LIBDIR)/pkgconfig'
	install -m 644 include/eman.h include/eman.hpp '$(INTO)/include'
ifeq ($(OS),windows)
	install -m 755 $(LIBRARY) '$(INTO)/$(RUNTIME)'
	install -m 644 $(TARGET)/eman.def $(LINKABLE) '$(INTO)/$(LIBDIR)'
else ifeq ($(OS),darwin)
	install -m 755 $(LIBRARY) '$(INTO)/$(RUNTIME)'
	ln -sf $(SONAME) '$(INTO)/$(LIBDIR)/libeman.dylib'
else
	install -m 755 $(LIBRARY) '$(INTO)/$(RUNTIME).$(VERSION)'
	ln -sf $(SONAME).$(VERSION) '$(INTO)/$(RUNTIME)'
	ln -sf $(SONAME) '$(INTO)/$(LIBDIR)/libeman.so'
endif
	@$(FILL) include/emanConfig.cmake.in >'$(INTO)/$(LIBDIR)/cmake/eman/emanConfig.cmake'
	@$(FILL) include/emanConfigVersion.cmake.in >'$(INTO)/$(LIBDIR)/cmake/eman/emanConfigVersion.cmake'
	@$(FILL) include/eman.pc.in >'$(INTO)/$(LIBDIR)/pkgconfig/eman.pc'
