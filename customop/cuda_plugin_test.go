package customop

import (
	"maps"
	"strings"
	"testing"
)

func TestPluginDevice(t *testing.T) {
	settings := map[string]string{"device_id": "1", "gpu_mem_limit": "1000"}
	device, others, err := pluginDevice(2, settings)
	if err != nil || device != 1 || !maps.Equal(others, map[string]string{"gpu_mem_limit": "1000"}) {
		t.Errorf("device %d with %v, %v", device, others, err)
	}
	if len(settings) != 2 {
		t.Error("the caller's settings were changed")
	}
	if device, others, err = pluginDevice(1, nil); err != nil || device != 0 || len(others) > 0 {
		t.Errorf("without settings device %d with %v, %v", device, others, err)
	}
	for _, id := range []string{"2", "-1", "first", ""} {
		if _, _, err := pluginDevice(2, map[string]string{"device_id": id}); err == nil || !strings.Contains(err.Error(), "has 2 devices") {
			t.Errorf("device_id %q: %v", id, err)
		}
	}
}

func TestCapturesGraphs(t *testing.T) {
	for on, want := range map[string]bool{"1": true, "True": true, "0": false, "": false, "false": false} {
		if got := capturesGraphs(map[string]string{"enable_cuda_graph": on}); got != want {
			t.Errorf("enable_cuda_graph %q: %v", on, got)
		}
	}
	if capturesGraphs(nil) {
		t.Error("without settings")
	}
}
