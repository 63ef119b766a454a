package main

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// importsOf lists the libraries that a program for Windows needs.
func importsOf(f *pe.File) ([]string, error) {
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return nil, err
	}
	var libraries []string
	for _, s := range symbols {
		if _, library, ok := strings.Cut(s, ":"); ok {
			libraries = append(libraries, strings.ToLower(library))
		}
	}
	slices.Sort(libraries)
	return slices.Compact(libraries), nil
}

// exportsOf lists the functions that a library for Windows shows. The format is that of
// Microsoft's PE specification, ".edata".
func exportsOf(f *pe.File) ([]string, error) {
	header, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return nil, fmt.Errorf("it is not a 64-bit file")
	}
	table := header.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT]
	if table.Size == 0 {
		return nil, nil
	}
	directory, err := at(f, table.VirtualAddress, 40)
	if err != nil {
		return nil, err
	}
	count, names := binary.LittleEndian.Uint32(directory[24:]), binary.LittleEndian.Uint32(directory[32:])
	addresses, err := at(f, names, 4*count)
	if err != nil {
		return nil, err
	}
	var list []string
	for i := range count {
		name, err := at(f, binary.LittleEndian.Uint32(addresses[4*i:]), 1)
		if err != nil {
			return nil, err
		}
		text, _, _ := bytes.Cut(name, []byte{0})
		list = append(list, string(text))
	}
	return list, nil
}

// at returns the bytes from an address to the end of its section, least of them.
func at(f *pe.File, address, least uint32) ([]byte, error) {
	for _, s := range f.Sections {
		if address >= s.VirtualAddress && address < s.VirtualAddress+s.Size {
			data, err := s.Data()
			if err != nil {
				return nil, err
			}
			if data = data[address-s.VirtualAddress:]; uint32(len(data)) >= least {
				return data, nil
			}
		}
	}
	return nil, fmt.Errorf("nothing stands at address %#x", address)
}
