# One tuple space, and what a client would else do tuple by tuple: behind DRb, or in a program.
require 'drb'
require 'rinda/tuplespace'

# What the clients get: the space, and two loops over it that need no round trip per tuple.
class Front
  include DRbUndumped

  def initialize
    @space = Rinda::TupleSpace.new
  end

  def write(tuple)
    @space.write(tuple)
    nil
  end

  def take(template, patience)
    @space.take(template, patience)
  end

  def read(template, patience)
    @space.read(template, patience)
  end

  def write_all(tuples)
    tuples.each { |tuple| @space.write(tuple) }
    nil
  end

  def count(template)
    @space.read_all(template).size
  end

  def clear
    @space = Rinda::TupleSpace.new
    nil
  end
end
