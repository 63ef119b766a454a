// Distcheck looks at the programs and libraries of a release: their formats, what they need of the
// system, and what libraries show. It prints a table in Markdown, and fails where something is not as it must be.
//
//	distcheck build/dist              all platforms
//	distcheck build/dist linux_amd64  this one
package main

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// oldestGlibc is the version of glibc that releases for Linux may need at most.
const oldestGlibc = 28

// platforms and the machine that their files are for.
var platforms = []struct{ name, machine, program, library string }{
	{"linux_amd64", "EM_X86_64", "rope-rewrite", "librope_ops.so"},
	{"linux_arm64", "EM_AARCH64", "rope-rewrite", "librope_ops.so"},
	{"darwin_amd64", "CpuAmd64", "rope-rewrite", "librope_ops.dylib"},
	{"darwin_arm64", "CpuArm64", "rope-rewrite", "librope_ops.dylib"},
	{"windows_amd64", "0x8664", "rope-rewrite.exe", "rope_ops.dll"},
}

// seen is what was seen of a file.
type seen struct {
	machine string
	needs   []string // libraries
	glibc   int      // the newest 2.N that it asks for
	shows   []string // functions of a library
	debug   bool     // it has tables for debuggers
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: distcheck DIRECTORY [PLATFORM...]")
		os.Exit(2)
	}
	failed := false
	fmt.Println("| file | machine | MB | needs | shows |")
	fmt.Println("|---|---|---|---|---|")
	for _, p := range platforms {
		if wanted := os.Args[2:]; len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		for _, name := range []string{p.program, p.library} {
			path := filepath.Join(os.Args[1], p.name, name)
			s, err := look(path)
			if err == nil {
				err = s.check(p.machine, name == p.library)
			}
			if err == nil {
				err = portable(path, os.Args[1])
			}
			if err == nil && name == p.library {
				_, err = customop.InspectLibrary(path) // what the command says of it
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "distcheck: %s: %v\n", path, err)
				failed = true
				continue
			}
			needs := strings.Join(s.needs, ", ")
			if s.glibc > 0 {
				needs += fmt.Sprintf("; glibc 2.%d", s.glibc)
			}
			info, err := os.Stat(path)
			if err != nil {
				fmt.Fprintln(os.Stderr, "distcheck:", err)
				os.Exit(1)
			}
			fmt.Printf("| %s/%s | %s | %.1f | %s | %s |\n", p.name, name, s.machine, float64(info.Size())/1e6, needs, strings.Join(s.shows, ", "))
		}
	}
	if failed {
		os.Exit(1)
	}
}

// own are the functions that a library shows to its users.
var own = []string{"RegisterCustomOps", "RopeCpuTarget", "RopeFreeTensor", "RopeMark", "RopeNewTensor", "RopeTensorValue"}

func (s *seen) check(machine string, library bool) error {
	if s.machine != machine {
		return fmt.Errorf("it is for %s, not %s", s.machine, machine)
	}
	if s.glibc > oldestGlibc {
		return fmt.Errorf("it needs glibc 2.%d, newer than 2.%d", s.glibc, oldestGlibc)
	}
	if s.debug {
		return errors.New("it has tables for debuggers, and in them paths of the machine that built it")
	}
	if slices.ContainsFunc(s.needs, func(n string) bool { return strings.Contains(n, "stdc++") || strings.Contains(n, "libc++.so") }) {
		return fmt.Errorf("it needs a library of C++: %v", s.needs)
	}
	if !library {
		s.shows = nil
		return nil
	}
	s.shows = slices.DeleteFunc(s.shows, func(f string) bool { return !slices.Contains(own, f) })
	slices.Sort(s.shows)
	if !slices.Equal(s.shows, own) {
		return fmt.Errorf("it shows %v, not %v", s.shows, own)
	}
	return nil
}

// portable refuses a file that names the folder it was built in: its bytes would differ elsewhere.
func portable(path, built string) error {
	built, err := filepath.Abs(built)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if at := bytes.Index(data, []byte(built)); at >= 0 {
		name, _, _ := bytes.Cut(data[at:], []byte{0})
		return fmt.Errorf("it names the folder that it was built in: %s", name)
	}
	return nil
}

func look(path string) (*seen, error) {
	if f, err := elf.Open(path); err == nil {
		defer f.Close()
		return lookELF(f)
	}
	if f, err := macho.Open(path); err == nil {
		defer f.Close()
		return lookMachO(f)
	}
	f, err := pe.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return lookPE(f)
}

func lookELF(f *elf.File) (*seen, error) {
	s := &seen{machine: f.Machine.String(), debug: f.Section(".debug_info") != nil}
	var err error
	if s.needs, err = f.ImportedLibraries(); err != nil {
		return nil, err
	}
	imported, err := f.ImportedSymbols()
	if err != nil {
		return nil, err
	}
	for _, symbol := range imported {
		if minor, ok := strings.CutPrefix(symbol.Version, "GLIBC_2."); ok {
			minor, _, _ = strings.Cut(minor, ".")
			if n, err := strconv.Atoi(minor); err == nil {
				s.glibc = max(s.glibc, n)
			}
		}
	}
	symbols, err := f.DynamicSymbols()
	for _, symbol := range symbols {
		if symbol.Section != elf.SHN_UNDEF {
			s.shows = append(s.shows, symbol.Name)
		}
	}
	return s, err
}

func lookMachO(f *macho.File) (*seen, error) {
	s := &seen{machine: f.Cpu.String()}
	var err error
	if s.needs, err = f.ImportedLibraries(); err != nil {
		return nil, err
	}
	if f.Symtab != nil {
		for _, symbol := range f.Symtab.Syms {
			if symbol.Sect != 0 {
				s.shows = append(s.shows, strings.TrimPrefix(symbol.Name, "_"))
			}
		}
	}
	return s, nil
}

func lookPE(f *pe.File) (*seen, error) {
	s := &seen{machine: fmt.Sprintf("%#x", f.Machine)}
	var err error
	if s.needs, err = importsOf(f); err != nil {
		return nil, err
	}
	s.shows, err = exportsOf(f)
	return s, err
}
