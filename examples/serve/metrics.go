package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// metrics are for Prometheus.
type metrics struct {
	show     http.Handler
	requests *prometheus.CounterVec
	finishes *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	first    prometheus.Histogram
}

func newMetrics(m *lm.Model) *metrics {
	all := prometheus.NewRegistry()
	times := prometheus.ExponentialBuckets(0.005, 2, 16) // 5 ms to 164 s
	own := &metrics{
		show:     promhttp.HandlerFor(all, promhttp.HandlerOpts{}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "serve_requests_total", Help: "Requests that were answered or refused."}, []string{"path", "status"}),
		finishes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "serve_finishes_total", Help: "Why texts ended."}, []string{"reason"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "serve_request_seconds", Help: "From a request to the end of its answer.", Buckets: times}, []string{"path"}),
		first:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "serve_first_token_seconds", Help: "From a request to its first token.", Buckets: times}),
	}
	all.MustRegister(own.requests, own.finishes, own.seconds, own.first, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, of func(lm.Load) int) {
		all.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of(m.Load())) }))
	}
	gauge("serve_rows", "Texts that can be generated at the same time.", func(l lm.Load) int { return l.Rows })
	gauge("serve_running", "Texts that are being generated.", func(l lm.Load) int { return l.Running })
	gauge("serve_waiting", "Texts that wait for a row.", func(l lm.Load) int { return l.Waiting })
	counter := func(name, help string, of func(lm.Load) uint64) {
		all.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(of(m.Load())) }))
	}
	counter("serve_prompt_tokens_computed_total", "Tokens of prompts that were computed.", func(l lm.Load) uint64 { return l.Computed })
	counter("serve_prompt_tokens_cached_total", "Tokens of prompts that a cache held.", func(l lm.Load) uint64 { return l.Reused })
	counter("serve_completion_tokens_total", "Tokens of answers.", func(l lm.Load) uint64 { return l.Generated })
	return own
}

func (m *metrics) observe(route string, status int, e *entry) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(time.Since(e.begun).Seconds())
	for _, reason := range e.finish {
		m.finishes.WithLabelValues(reason).Inc()
	}
	if e.completion > 0 {
		m.first.Observe(e.first.Sub(e.begun).Seconds())
	}
}

func (s *server) showMetrics(w http.ResponseWriter, r *http.Request, _ *entry) error {
	s.metrics.show.ServeHTTP(w, r)
	return nil
}
