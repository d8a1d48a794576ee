package watch

// Held is how many snapshots the Manager has in memory.
func (m *Manager) Held() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	held := 0
	for _, k := range m.kinds {
		for _, s := range []*session{k.serving, k.next} {
			if s != nil {
				held += len(s.objects) + len(s.staged)
			}
		}
	}
	return held
}

// Sessions is how many watches run or try to.
func (m *Manager) Sessions() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	running := 0
	for _, k := range m.kinds {
		for _, s := range []*session{k.serving, k.next} {
			if s != nil {
				running++
			}
		}
	}
	return running
}
