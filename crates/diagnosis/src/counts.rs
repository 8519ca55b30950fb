//! What one direction of a connection carried, as numbers. Only what is here writes them.

/// The numbers of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    segments: u64,
    data_segments: u64,
    bytes: u64,
    resent_segments: u64,
    resent_bytes: u64,
    resized_segments: u64,
    resized_bytes: u64,
    unseen_bytes: u64,
    aggregates: u64,
    pure_acks: u64,
    acknowledgements: u64,
}

/// What they are.
impl Counts {
    /// All segments of its end that the file has once.
    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// Those with data.
    pub(crate) fn data_segments(&self) -> u64 {
        self.data_segments
    }

    /// New bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Segments that were sent again.
    pub(crate) fn resent_segments(&self) -> u64 {
        self.resent_segments
    }

    /// Their bytes.
    pub(crate) fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    /// Segments of those that were sent again because their size was wrong.
    pub(crate) fn resized_segments(&self) -> u64 {
        self.resized_segments
    }

    /// Their bytes.
    pub(crate) fn resized_bytes(&self) -> u64 {
        self.resized_bytes
    }

    /// Acknowledged bytes that the capture has not.
    pub(crate) fn unseen_bytes(&self) -> u64 {
        self.unseen_bytes
    }

    /// Segments that are several.
    pub(crate) fn aggregates(&self) -> u64 {
        self.aggregates
    }

    /// Segments that only acknowledge.
    pub(crate) fn pure_acks(&self) -> u64 {
        self.pure_acks
    }

    /// Acknowledgements of something new that its end received.
    pub(crate) fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }
}

/// What happens.
impl Counts {
    /// A segment of its end passes.
    #[inline]
    pub(crate) fn pass(&mut self, only_acks: bool) {
        self.segments += 1;
        self.pure_acks += u64::from(only_acks);
    }

    /// It has data, or a FIN alone.
    #[inline]
    pub(crate) fn carry(&mut self, has_data: bool, is_aggregate: bool) {
        self.data_segments += u64::from(has_data);
        self.aggregates += u64::from(is_aggregate);
    }

    /// So many of its bytes are new.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// It was sent before.
    pub(crate) fn resend(&mut self, bytes: u64) {
        self.resent_segments += 1;
        self.resent_bytes += bytes;
    }

    /// It was sent before, in another size, which its sender has given up.
    pub(crate) fn resize(&mut self, bytes: u64) {
        self.resized_segments += 1;
        self.resized_bytes += bytes;
    }

    /// The other end acknowledges something new.
    #[inline]
    pub(crate) fn answer(&mut self) {
        self.acknowledgements += 1;
    }

    /// So many bytes that were acknowledged are not in the capture.
    #[inline]
    pub(crate) fn lack(&mut self, bytes: u64) {
        self.unseen_bytes += bytes;
    }

    /// So many of those were never sent.
    pub(crate) fn disown(&mut self, bytes: u64) {
        self.unseen_bytes = self.unseen_bytes.saturating_sub(bytes);
    }
}
