# A Rinda server: one tuple space, on a Unix socket.
require 'drb/unix'
require_relative 'front'

DRb.start_service("drbunix:#{ARGV[0]}", Front.new)
DRb.thread.join
