# libeman. `make` builds the library; `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := library

BUILD   := build
PREFIX  ?= /usr/local
DESTDIR ?=
PYTHON  ?= python3
CC      ?= cc
CXX     ?= c++

VERSION := $(shell sed -n 's/^#define EMAN_VERSION_STRING "\(.*\)"/\1/p' include/eman.h)
ABI     := $(shell sed -n 's/^#define EMAN_ABI_VERSION \([0-9]*\)/\1/p' include/eman.h)

VENV     := $(BUILD)/venv
PY       := $(VENV)/bin/python
LIBRARY  := $(BUILD)/libeman.so
SONAME   := libeman.so.$(ABI)

GO_SOURCES := $(shell find capi core geometry simd -name '*.go' -o -name '*.s' -o -name '*.c' -o -name '*.h') \
              go.mod go.sum include/eman.h capi/exports.map

LINK := -Wl,-soname,$(SONAME) -Wl,--version-script=$(CURDIR)/capi/exports.map \
        -Wl,-z,now -Wl,-z,relro -Wl,-z,defs -Wl,-z,nodelete

.PHONY: help library
help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

library: $(LIBRARY) ## The shared library, build/libeman.so (the default)

$(LIBRARY): $(GO_SOURCES)
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 GOAMD64=v1 go build -buildmode=c-shared -trimpath \
	  -ldflags "-s -w -extldflags '$(LINK)'" -o $@ ./capi
	@rm -f $(BUILD)/libeman.h
	@ln -sf libeman.so $(BUILD)/$(SONAME)
